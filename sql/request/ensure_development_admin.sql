-- Creates the development admin with id $1, or makes it usable again. It is a real row, so that files can belong to
-- it, but has no password hash: it cannot sign in, and no list, count or export shows it.
WITH usable AS (
    INSERT INTO users (id, username, email, email_key, role, is_development_admin)
    VALUES ($1, 'dev_admin', 'dev_admin@example.com', 'dev_admin@example.com', 'admin', true)
    ON CONFLICT (id) DO UPDATE SET is_active = true, is_deleted = false, role = 'admin'
    RETURNING *
)
SELECT a.* FROM usable, account(usable) a
