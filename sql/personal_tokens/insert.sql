-- Stores a personal access token of user $1. $2: the version of the credentials that the request's sender was
-- authenticated with; $3: id; $4: hash; $5: name; $6: whether it is read-only; $7: its lifetime in days; $8: the most
-- live tokens of a user. No row means that the account is deactivated or deleted, or its credentials have changed; a
-- row without an id, that the user has too many tokens. Tokens that have expired do not count.
-- The lock makes parallel requests of a user wait for each other, and for a change of the password, which ends all
-- tokens: without it a token could be stored just after they ended, for whoever is not to have one any more.
WITH owner AS (
    SELECT id FROM users
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), token AS (
    INSERT INTO personal_tokens (id, user_id, token_hash, name, read_only, expires_at)
    SELECT $3, id, $4, $5, $6, now() + make_interval(hours => 24 * $7) FROM owner
    WHERE count_personal_tokens(id) < $8
    RETURNING *
)
SELECT token.id, name, read_only, created_at, expires_at, last_used_at
FROM owner LEFT JOIN token ON true
