-- Ends every session of user $1, and revokes every token without a session that was issued until now. $2, $3: address
-- and request id of the event.
WITH owner AS (
    UPDATE users SET sessions_ended_at = now() WHERE id = $1 RETURNING id
)
INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
SELECT 'auth.logout', id, 'user', id, $2, $3, jsonb_build_object('scope', 'all', 'sessions', end_sessions(id))
FROM owner
