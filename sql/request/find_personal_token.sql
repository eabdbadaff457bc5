-- The user of the personal access token with hash $1, the scope of the token, and the version of the user's
-- credentials. No row means that there is no such token, or that it has expired more than $2 seconds ago.
-- The same statement stores the hour of the use. It writes only at the first use of a token in an hour; all other uses
-- only read. Running it twice has no further effect, so it may be repeated.
WITH used AS (
    UPDATE personal_tokens SET last_used_at = date_trunc('hour', now(), 'UTC')
    WHERE token_hash = $1 AND expires_at > now()
      AND (last_used_at IS NULL OR last_used_at < date_trunc('hour', now(), 'UTC'))
)
SELECT a.*, t.scope
FROM personal_tokens t JOIN users u ON u.id = t.user_id CROSS JOIN account(u) a
WHERE t.token_hash = $1 AND t.expires_at + make_interval(secs => $2) > now()
  AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
