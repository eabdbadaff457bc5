-- Removes up to ten thousand sessions to which no valid token can refer any more; returns how many it removed. Of
-- several processes each takes other ones.
WITH removed AS (
    DELETE FROM sessions
    WHERE id IN (SELECT id FROM sessions WHERE expires_at < now() ORDER BY expires_at LIMIT 10000
                 FOR UPDATE SKIP LOCKED)
    RETURNING id
)
SELECT count(*) AS removed FROM removed
