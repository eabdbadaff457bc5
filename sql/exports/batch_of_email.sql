-- The next rows of an export of accounts whose address matches, otherwise like exports/batch.sql. $1, $2: creation time
-- and id of the last row of the batch before; $3: how many rows at most; $4: LIKE pattern for the e-mail address.
SELECT id, u.username, u.email, u.name, u.role, u.is_active, u.created_at, updated_at, last_login, total_uploads,
       total_storage_used
FROM users u JOIN listed_users l ON l.user_id = u.id
WHERE NOT is_deleted AND NOT is_development_admin AND l.email LIKE folded($4)
  AND (u.created_at, id) > ($1, $2)
ORDER BY u.created_at, id LIMIT $3
