-- Ends all personal access tokens of user $1. $2, $3, $4: actor, address and request id of the event, which is one for
-- all tokens, has their number, and is written if there were any. No row means that there is no such user. Tokens that
-- have expired are removed with time, as all are.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
), ended AS (
    DELETE FROM personal_tokens t USING owner WHERE t.user_id = owner.id AND t.expires_at > now() RETURNING t.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.token_delete', $2, 'user', $1, $3, $4, jsonb_build_object('tokens', count(*)) FROM ended
    HAVING count(*) > 0
)
SELECT id FROM owner
