-- The password hash of user $1 and the version of the credentials, for checking the current password. The development
-- admin is found too and has no hash.
SELECT password_hash, credentials_version FROM users WHERE id = $1 AND NOT is_deleted
