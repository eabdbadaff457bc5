-- Removes up to $1 records of used password reset tokens that have expired since; returns how many it
-- removed. Several processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM used_password_reset_tokens
    WHERE id = ANY (ARRAY(
        SELECT id FROM used_password_reset_tokens WHERE expires_at < now() ORDER BY expires_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) AS removed FROM removed
