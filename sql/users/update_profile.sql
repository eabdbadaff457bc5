-- A user's own changes. Another e-mail address makes reset tokens sent to the old one worthless.
UPDATE users
SET username = coalesce($2, username),
    email = coalesce($3, email),
    name = coalesce($4, name),
    credentials_version = credentials_version + (coalesce($3, email) <> email)::integer,
    updated_at = now()
WHERE id = $1 AND NOT is_deleted
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used
