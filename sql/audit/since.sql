-- The next thousand audit events after the one with time $1 and id $2, the oldest first.
SELECT id, at, action::text AS action, outcome::text AS outcome, actor_id, subject_type, subject_id, address,
       request_id, details
FROM audit_events
WHERE (at, id) > ($1, $2)
ORDER BY at, id
LIMIT 1000
