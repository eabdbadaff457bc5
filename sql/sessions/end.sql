-- Ends session $2 of user $1. $3: the maximum age of a session in seconds; $4, $5: address and request id of the
-- event. No row means that the user has no such session, or that it has ended already.
WITH ended AS (
    UPDATE sessions SET ended_at = now()
    WHERE id = $2 AND user_id = $1 AND ended_at IS NULL AND expires_at > now()
      AND created_at + make_interval(secs => $3) > now()
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.session_end', $1, 'session', id, $4, $5 FROM ended
)
SELECT id FROM ended
