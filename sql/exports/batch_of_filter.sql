-- The next rows of an export of accounts that match, otherwise like exports/batch.sql. $1 to $9: the conditions, as
-- matching_users() has them; $10, $11: creation time and id of the last row of the batch before; $12: how many rows at
-- most.
SELECT id, u.username, u.email, u.name, u.role, u.is_active, u.created_at, updated_at, last_login, total_uploads,
       total_storage_used
FROM users u JOIN matching_users($1, $2, $3, $4, $5, $6, $7, $8, $9) l ON l.user_id = u.id
WHERE NOT is_deleted AND NOT is_development_admin AND (u.created_at, id) > ($10, $11)
ORDER BY u.created_at, id LIMIT $12
