-- Creates the development admin with id $1, or makes it usable again. It is a real row, so that files can belong to
-- it, but has no password hash: it cannot sign in, and no list, count or export shows it.
INSERT INTO users (id, username, email, email_key, role, is_development_admin)
VALUES ($1, 'dev_admin', 'dev_admin@example.com', 'dev_admin@example.com', 'admin', true)
ON CONFLICT (id) DO UPDATE SET is_active = true, is_deleted = false, role = 'admin'
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used, storage_quota, file_quota,
       second_factor_at IS NOT NULL AS second_factor
