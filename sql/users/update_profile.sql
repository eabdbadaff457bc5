-- A user's changes to their own account $1. $2: username; $3: e-mail address; $4: display name; null leaves a column
-- as it is. $5: version of the credentials that were checked, null where none were. No row means that the account was
-- deleted, or its credentials changed, in the meantime.
-- Another e-mail address increments the version of the credentials, so that reset tokens that were sent to the old one
-- become invalid.
UPDATE users
SET username = coalesce($2, username),
    email = coalesce($3, email),
    name = coalesce($4, name),
    credentials_version = credentials_version + (coalesce($3, email) <> email)::integer,
    updated_at = now()
WHERE id = $1 AND credentials_version = coalesce($5, credentials_version) AND NOT is_deleted
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used
