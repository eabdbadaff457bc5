-- Ends personal access token $2 of user $1. $3, $4: address and request id of the event. No row means that the user has
-- no such live token. The user's row is locked first, as everywhere, so that this and a change that ends all tokens do
-- not deadlock.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE
), ended AS (
    DELETE FROM personal_tokens t USING owner WHERE t.id = $2 AND t.user_id = owner.id AND t.expires_at > now()
    RETURNING t.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.token_delete', $1, 'token', id, $3, $4 FROM ended
)
SELECT id FROM ended
