-- The newest audit events that match and precede time $6 and id $7. $1: actor; $2: subject; $3: action; $4: outcome;
-- $5: not before; a null is no condition; $8: how many at most. There is no other upper bound: with two of them, a
-- search in an index would begin at one, and read all rows that the other one excludes.
-- Without a condition on more than the time, the primary key leads to them. Otherwise the newest events are read of
-- each kind (action and outcome) that is asked for, and the newest of those are the page. The index for a kind, its
-- actors or its subjects leads straight to them, so a page costs at most 40 look-ups, however rare the matches are.
-- PostgreSQL plans the query each time for its parameters, which drops the conditions that are null.
WITH page AS (
    (SELECT at, id FROM audit_events
     WHERE $1::uuid IS NULL AND $2::uuid IS NULL AND $3::text IS NULL AND $4::text IS NULL
       AND ($5::timestamptz IS NULL OR at >= $5) AND (at, id) < ($6::timestamptz, $7::uuid)
     ORDER BY at DESC, id DESC LIMIT $8)
    UNION ALL
    (SELECT newest.at, newest.id
     FROM unnest(enum_range(NULL::audit_action)) kind (action)
     CROSS JOIN unnest(enum_range(NULL::audit_outcome)) ending (outcome)
     CROSS JOIN LATERAL (
         SELECT e.at, e.id FROM audit_events e
         WHERE e.action = kind.action AND e.outcome = ending.outcome
           AND ($1 IS NULL OR e.actor_id = $1) AND ($2 IS NULL OR e.subject_id = $2)
           AND ($5 IS NULL OR e.at >= $5) AND (e.at, e.id) < ($6, $7)
         ORDER BY e.at DESC, e.id DESC LIMIT $8
     ) newest
     WHERE ($1 IS NOT NULL OR $2 IS NOT NULL OR $3 IS NOT NULL OR $4 IS NOT NULL)
       AND ($3 IS NULL OR kind.action = $3::audit_action) AND ($4 IS NULL OR ending.outcome = $4::audit_outcome)
     ORDER BY newest.at DESC, newest.id DESC LIMIT $8)
)
SELECT e.id, e.at, e.action::text AS action, e.outcome::text AS outcome, e.actor_id, e.subject_type, e.subject_id,
       e.address, e.request_id,
       -- The present name of a file, as long as the service has it. The log itself keeps no texts of users.
       e.details || CASE WHEN e.subject_type = 'file' THEN coalesce(
           (SELECT jsonb_build_object('filename', filename) FROM files WHERE id = e.subject_id),
           (SELECT jsonb_build_object('filename', filename) FROM deleted_files WHERE id = e.subject_id), '{}')
       ELSE '{}' END AS details
FROM page JOIN audit_events e ON e.at = page.at AND e.id = page.id
ORDER BY e.at DESC, e.id DESC
