-- The account with username or e-mail address $1, for a login. A username cannot contain "@", so at most one account
-- matches.
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, password_hash, credentials_version
FROM users
WHERE (lower(username) = lower($1) OR lower(email) = lower($1)) AND NOT is_deleted AND NOT is_development_admin
