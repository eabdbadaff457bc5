-- The active account with e-mail address $1, to which a password reset is sent.
SELECT id, credentials_version
FROM users
WHERE lower(email) = lower($1) AND is_active AND NOT is_deleted AND NOT is_development_admin
