-- Removes up to $1 networks from which their account has not signed in for 30 days; returns how many it
-- removed. Several processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM sign_in_networks
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sign_in_networks
        WHERE last_sign_in_at < now() - interval '30 days'
        ORDER BY last_sign_in_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING user_id
)
SELECT count(*) AS removed FROM removed
