-- What the current password of user $1 is checked against. The development admin is found too and has no hash.
SELECT password_hash, credentials_version FROM users WHERE id = $1 AND NOT is_deleted
