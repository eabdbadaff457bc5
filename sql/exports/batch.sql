-- The next rows of an export, in the order of creation and then of ids. $1: LIKE pattern for the e-mail address, null
-- for all; $2, $3: creation time and id of the last row of the batch before; $4: how many rows at most.
-- The position is a row and not an OFFSET: the index users_created leads straight to it, and accounts that come and
-- go between two batches neither hide nor repeat another one. Without a pattern PostgreSQL leaves out the join.
SELECT id, u.username, u.email, u.name, u.role, u.is_active, u.created_at, updated_at, last_login, total_uploads,
       total_storage_used
FROM users u LEFT JOIN listed_users l ON l.user_id = u.id
WHERE NOT is_deleted AND NOT is_development_admin AND ($1::text IS NULL OR l.email LIKE lower($1))
  AND (u.created_at, id) > ($2, $3)
ORDER BY u.created_at, id
LIMIT $4
