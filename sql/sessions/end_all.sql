-- Ends every session of user $1, and revokes every token without a session that was issued until now.
WITH ended AS (UPDATE sessions SET ended_at = now() WHERE user_id = $1 AND ended_at IS NULL)
UPDATE users SET sessions_ended_at = now() WHERE id = $1
