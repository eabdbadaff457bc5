-- The development admin: a real row, so that it can own things, without a password.
INSERT INTO users (id, username, email, role)
VALUES ($1, 'dev_admin', 'dev_admin@example.com', 'admin')
ON CONFLICT (id) DO UPDATE SET is_active = true, is_deleted = false, role = 'admin'
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used
