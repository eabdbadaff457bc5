-- The live personal access tokens of user $1, newest first. No row means that there is no such user; a row without an
-- id, that the user has no live token.
SELECT t.id, t.name, t.scope, t.created_at, t.expires_at, t.last_used_at
FROM users u LEFT JOIN personal_tokens t ON t.user_id = u.id AND t.expires_at > now()
WHERE u.id = $1 AND NOT u.is_deleted AND NOT u.is_development_admin
ORDER BY t.created_at DESC, t.id
