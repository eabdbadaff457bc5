-- Registers an account; the unique indexes decide whether the names are free.
INSERT INTO users (id, username, email, name, password_hash)
VALUES ($1, $2, $3, $4, $5)
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used
