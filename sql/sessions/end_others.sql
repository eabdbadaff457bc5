-- Ends all sessions of user $1 but $2. Tokens without a session end too, unless the request's token is itself one of
-- them ($2 is null): such tokens cannot be told apart. $3, $4: address and request id of the event, which is written if
-- anything ended.
WITH owner AS (
    UPDATE users SET sessions_ended_at = CASE WHEN $2::uuid IS NULL THEN sessions_ended_at ELSE now() END
    WHERE id = $1
    RETURNING id
), ended AS (
    SELECT end_sessions(id, $2) AS sessions FROM owner
)
INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
SELECT 'auth.logout', $1, 'user', $1, $3, $4, jsonb_build_object('scope', 'others', 'sessions', sessions) FROM ended
WHERE sessions > 0 OR $2 IS NOT NULL
