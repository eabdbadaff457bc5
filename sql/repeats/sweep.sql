-- Removes up to $1 keys that are over a day old; returns how many it removed. Several processes may run this at once:
-- SKIP LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM idempotency_keys
    WHERE (user_id, key) IN (
        SELECT user_id, key FROM idempotency_keys WHERE created_at < now() - interval '1 day' ORDER BY created_at
        LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    RETURNING user_id
)
SELECT count(*) AS removed FROM removed
