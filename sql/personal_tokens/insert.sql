-- Stores a personal access token of user $1, who is told by mail. $2: the version of the credentials that the request's
-- sender was authenticated with; $3: id; $4: hash; $5: name; $6: scope; $7: its lifetime in days; $8: the most live
-- tokens of a user; $9, $10: address and request id of the event; $11, $12: session and time of issue of the access
-- token, see is_signed_in. No row means that the account is deactivated or deleted, its credentials have changed, or
-- the session has ended; a row without an id, that the user has too many tokens. Tokens that have expired do not count.
-- The lock makes parallel requests of a user wait for each other, and for a change of the password, which ends all
-- tokens: otherwise somebody with the old password could store a token just after that.
WITH locked AS (
    SELECT id FROM users
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), owner AS (
    SELECT id FROM locked WHERE is_signed_in(id, $11, $12)
), token AS (
    INSERT INTO personal_tokens (id, user_id, token_hash, name, scope, expires_at)
    SELECT $3, id, $4, $5, $6, now() + make_interval(hours => 24 * $7) FROM owner
    WHERE count_personal_tokens(id) < $8
    RETURNING *
), message AS (
    INSERT INTO outbox (kind, user_id) SELECT 'token_created', user_id FROM token
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.token_create', user_id, 'token', id, $9, $10,
           jsonb_build_object('scope', scope, 'read_only', scope = 'read', 'expires_in_days', $7)
    FROM token
)
SELECT token.id, name, scope, created_at, expires_at, last_used_at
FROM owner LEFT JOIN token ON true
