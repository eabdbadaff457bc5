-- The next rows of an export after the one of $2 and $3. $1: pattern for the e-mail address.
SELECT id, username, email, name, role, is_active, created_at, updated_at, last_login, total_uploads,
       total_storage_used
FROM users
WHERE NOT is_deleted AND password_hash IS NOT NULL AND ($1::text IS NULL OR lower(email) LIKE lower($1))
  AND (created_at, id) > ($2, $3)
ORDER BY created_at, id
LIMIT $4
