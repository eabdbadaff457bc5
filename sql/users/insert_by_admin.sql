-- An account as an admin, or a test, describes it; what is null is made up.
INSERT INTO users (id, username, email, name, password_hash, role, permissions, is_active, created_at, last_login)
VALUES ($1, $2, $3, $4, $5, coalesce($6, 'user'), coalesce($7, '{}'::text[]), coalesce($8, true),
        coalesce($9, now()), $10)
RETURNING id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
          total_uploads, total_storage_used
