-- What a password change is checked against.
SELECT password_hash, credentials_version FROM users WHERE id = $1 AND NOT is_deleted
