-- Ends session $2 of user $1. $3: the maximum age of a session in seconds; $4, $5: address and request id of the
-- event. No row means that the user has no such session, or that it has ended already. The epochs are compared as in
-- sign_in/rotate.
WITH ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM users u
    WHERE s.id = $2 AND s.user_id = $1 AND s.ended_at IS NULL AND s.expires_at > now()
      AND s.created_at + make_interval(secs => $3) > now()
      AND u.id = s.user_id AND s.epoch >= u.session_epoch
    RETURNING s.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.session_end', $1, 'session', id, $4, $5 FROM ended
)
SELECT id FROM ended
