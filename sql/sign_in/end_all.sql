-- Ends every session of user $1 but $2, which may be null and, if $3 is true, revokes every token without a session
-- that was issued until now. $4, $5: address and request id of the event, which is written if anything ended; $6: its
-- scope.
WITH owner AS (
    UPDATE users SET sessions_ended_at = CASE WHEN $3 THEN now() ELSE sessions_ended_at END WHERE id = $1 RETURNING id
), ended AS (
    SELECT end_sessions(id, $2) AS sessions FROM owner
)
INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
SELECT 'auth.logout', $1, 'user', $1, $4, $5, jsonb_build_object('scope', $6::text, 'sessions', sessions) FROM ended
WHERE sessions > 0 OR $3
