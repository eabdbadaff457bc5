-- The session of the presented token. A token without one can only be ended with all its like.
WITH ended AS (UPDATE sessions SET ended_at = now() WHERE id = $2 AND user_id = $1 AND ended_at IS NULL)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND $2::uuid IS NULL
