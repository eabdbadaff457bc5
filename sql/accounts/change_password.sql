-- Sets the password of user $1. $2: version of the credentials that were checked; $3: the new hash; $4: the session
-- that stays, null for a token without one; $5, $6: address and request id of the event. All other sessions end, and so
-- do all tokens without a session, which cannot be told apart. No row means that the credentials were changed
-- meanwhile.
WITH changed AS (
    UPDATE users
    SET password_hash = $3,
        credentials_version = credentials_version + 1,
        sessions_ended_at = now(),
        updated_at = now()
    WHERE id = $1 AND credentials_version = $2 AND NOT is_deleted
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'password.change', id, 'user', id, $5, $6 FROM changed
)
SELECT id, end_sessions(id, $4) FROM changed
