-- Removes up to $1 sessions to which no valid token can refer any more; returns how many it removed. Several
-- processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM sessions
    WHERE id = ANY (ARRAY(
        SELECT id FROM sessions WHERE expires_at < now() ORDER BY expires_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) AS removed FROM removed
