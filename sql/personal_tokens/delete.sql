-- Ends personal access token $2 of user $1. $3, $4: address and request id of the event. No row means that the user has
-- no such live token.
WITH ended AS (
    DELETE FROM personal_tokens WHERE id = $2 AND user_id = $1 AND expires_at > now() RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.token_delete', $1, 'token', id, $3, $4 FROM ended
)
SELECT id FROM ended
