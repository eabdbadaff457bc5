-- Ends every session of user $1 as an administrator asks, and revokes every token without a session that was issued
-- until now. $2, $3, $4: actor, address and request id of the event, which is one for all sessions and has their
-- number. No row means that there is no such account.
WITH owner AS (
    UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), ended AS (
    SELECT id, end_sessions(id) AS sessions FROM owner
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.session_end', $2, 'user', id, $3, $4, jsonb_build_object('sessions', sessions) FROM ended
)
SELECT id FROM owner
