-- Ends all personal access tokens of user $1, with an event for each. $2, $3, $4: actor, address and request id of the
-- events. No row means that there is no such user.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
), ended AS (
    DELETE FROM personal_tokens t USING owner WHERE t.user_id = owner.id RETURNING t.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.token_delete', $2, 'token', id, $3, $4 FROM ended
)
SELECT id FROM owner
