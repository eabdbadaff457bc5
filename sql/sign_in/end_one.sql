-- Ends session $2 of user $1. If $2 is null, the request's token has no session: such tokens cannot be told apart,
-- so all of them end. $3, $4: address and request id of the event, which is written if anything ended. The epochs are
-- compared as in sign_in/rotate.
WITH ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM users u
    WHERE s.id = $2 AND s.user_id = $1 AND s.ended_at IS NULL AND u.id = s.user_id AND s.epoch >= u.session_epoch
    RETURNING s.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.logout', $1, 'user', $1, $3, $4, jsonb_build_object('scope', 'local', 'sessions', count(*)) FROM ended
    HAVING count(*) > 0 OR (SELECT $2::uuid) IS NULL
)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND (SELECT $2::uuid) IS NULL
