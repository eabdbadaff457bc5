-- The user of the personal access token with hash $1, the scope of the token, the version of the user's credentials, and
-- whether a use now would be the first one in this hour. No row means that there is no such token, or that it has
-- expired more than $2 seconds ago.
SELECT a.*, t.scope, t.id AS token_id, t.last_used_at IS DISTINCT FROM date_trunc('hour', now(), 'UTC') AS is_first_use
FROM personal_tokens t JOIN users u ON u.id = t.user_id CROSS JOIN account(u) a
WHERE t.token_hash = $1 AND t.expires_at + make_interval(secs => $2) > now()
  AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
