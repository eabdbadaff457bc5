-- The next thousand audit events after the one with time $1 and id $2, the oldest first, with the present usernames of
-- the accounts and the file that they name; null for deleted ones and for those without one.
WITH next AS MATERIALIZED (
    SELECT * FROM audit_events WHERE (at, id) > ($1, $2) ORDER BY at, id LIMIT 1000
)
SELECT e.id, e.at, e.action::text AS action, e.outcome::text AS outcome, e.actor_id, e.subject_type, e.subject_id,
       e.address, e.request_id, e.details, actor.username AS actor_name, subject.username AS subject_name,
       coalesce(file.filename, deleted.filename) AS filename
FROM next e
LEFT JOIN users actor ON actor.id = e.actor_id
LEFT JOIN users subject ON subject.id = e.subject_id
LEFT JOIN files file ON file.id = e.subject_id AND e.subject_type = 'file'
LEFT JOIN deleted_files deleted ON deleted.id = e.subject_id AND e.subject_type = 'file'
ORDER BY e.at, e.id
