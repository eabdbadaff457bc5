-- The account a password reset is for.
SELECT id, credentials_version
FROM users
WHERE lower(email) = lower($1) AND is_active AND NOT is_deleted AND password_hash IS NOT NULL
