-- Removes up to $1 links that have expired; returns how many it removed. Several processes may run this at once: SKIP
-- LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM file_links
    WHERE id = ANY (ARRAY(
        SELECT id FROM file_links WHERE expires_at < now() ORDER BY expires_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) AS removed FROM removed
