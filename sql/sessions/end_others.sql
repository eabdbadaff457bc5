-- Ends all sessions of user $1 but $2. Tokens without a session end too, unless the request's token is itself one of
-- them ($2 is null): such tokens cannot be told apart. $3, $4: address and request id of the event, which is written if
-- anything ended.
WITH ended AS (
    UPDATE sessions SET ended_at = now()
    WHERE user_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2::uuid
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.logout', $1, 'user', $1, $3, $4, jsonb_build_object('scope', 'others', 'sessions', count(*)) FROM ended
    HAVING count(*) > 0 OR $2 IS NOT NULL
)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND $2 IS NOT NULL
