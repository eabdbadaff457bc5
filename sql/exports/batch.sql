-- The next rows of an export of all accounts, in the order of creation and then of ids. $1, $2: creation time and id of
-- the last row of the batch before; $3: how many rows at most.
-- The position is a row and not an OFFSET: the index users_created leads straight to it, and accounts that come and
-- go between two batches neither hide nor repeat another one. The values are hidden from the planner in subqueries: if
-- it saw them, plans for few rows, or for the last ones, would look cheaper than the generic plan.
SELECT id, username, email, name, role, is_active, created_at, updated_at, last_login, total_uploads,
       total_storage_used
FROM users
WHERE NOT is_deleted AND NOT is_development_admin
  AND (created_at, id) > ((SELECT $1::timestamptz), (SELECT $2::uuid))
ORDER BY created_at, id LIMIT (SELECT $3::bigint)
