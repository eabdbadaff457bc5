-- Ends every session of user $1, and revokes every token without a session that was issued until now. $2, $3: address
-- and request id of the event.
WITH ended AS (
    UPDATE sessions SET ended_at = now() WHERE user_id = $1 AND ended_at IS NULL RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.logout', $1, 'user', $1, $2, $3, jsonb_build_object('scope', 'all', 'sessions', count(*)) FROM ended
)
UPDATE users SET sessions_ended_at = now() WHERE id = $1
