-- The next rows of an export, in the order of creation and then of ids. $1: LIKE pattern for the e-mail address, null
-- for all; $2, $3: creation time and id of the last row of the batch before; $4: how many rows at most; $5: how many
-- bytes, which the last row may exceed. bytes: those of the rows up to this one, where a row takes 250 and its texts.
-- The position is a row and not an OFFSET: the index users_created leads straight to it, and accounts that come and
-- go between two batches neither hide nor repeat another one. Without a pattern PostgreSQL leaves out the join.
SELECT id, username, email, name, role, is_active, created_at, updated_at, last_login, total_uploads,
       total_storage_used, bytes
FROM (
    SELECT u.*, size, sum(size) OVER (ORDER BY u.created_at, id ROWS UNBOUNDED PRECEDING) AS bytes
    FROM users u LEFT JOIN listed_users l ON l.user_id = u.id
    CROSS JOIN LATERAL (SELECT 250 + octet_length(u.email) + coalesce(octet_length(u.name), 0)) AS text (size)
    WHERE NOT is_deleted AND NOT is_development_admin AND ($1::text IS NULL OR l.email LIKE folded($1))
      AND (u.created_at, id) > ($2, $3)
    ORDER BY u.created_at, id LIMIT $4
) AS batch
WHERE bytes - size < $5 ORDER BY created_at, id
