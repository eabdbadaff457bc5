-- All sessions but that of the presented token. Where it has none, it is one of those that have none,
-- and they stay together.
WITH ended AS (
    UPDATE sessions SET ended_at = now()
    WHERE user_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2::uuid
)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND $2 IS NOT NULL
