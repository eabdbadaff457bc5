-- A page of the accounts that match, in one of six orders, and how many match in all. $1: LIKE pattern for the e-mail
-- address; $2: for the display name; $3: for the username or the e-mail address; $4: role; $5: whether active; $6:
-- created not before; $7: created not after; a null is no condition. $8: the order, in which absent names are last; $9:
-- accounts of a page; $10: accounts before it. A page past the end is one row with the total alone.
-- PostgreSQL plans the query each time for its parameters: conditions that are null are dropped, and all branches of
-- the UNION but one have a limit of 0, so they are not run. With a condition in its place PostgreSQL 15 would start
-- parallel workers for each branch, and compile a query that looks expensive. Each order and each filter has an index.
-- One plan for all parameters would read the whole table.
WITH matching AS NOT MATERIALIZED (
    SELECT id, created_at, lower(name) AS name, lower(coalesce(email_ascii, email)) AS email
    FROM users
    WHERE NOT is_deleted AND NOT is_development_admin
      AND ($1::text IS NULL OR lower(email) LIKE lower($1))
      AND ($2::text IS NULL OR lower(name) LIKE lower($2))
      AND ($3::text IS NULL OR lower(username) LIKE lower($3) OR lower(email) LIKE lower($3))
      AND ($4::text IS NULL OR role = $4)
      AND ($5::boolean IS NULL OR is_active = $5)
      AND ($6::timestamptz IS NULL OR created_at >= $6)
      AND ($7::timestamptz IS NULL OR created_at <= $7)
), page AS (
    (SELECT id, row_number() OVER (ORDER BY created_at, id) AS place FROM matching
     ORDER BY created_at, id
     LIMIT $9::bigint * ($8::text = 'created_at asc')::int OFFSET $10::bigint * ($8 = 'created_at asc')::int)
    UNION ALL
    (SELECT id, row_number() OVER (ORDER BY created_at DESC, id) FROM matching
     ORDER BY created_at DESC, id
     LIMIT $9 * ($8 = 'created_at desc')::int OFFSET $10 * ($8 = 'created_at desc')::int)
    UNION ALL
    (SELECT id, row_number() OVER (ORDER BY name, id) FROM matching
     ORDER BY name, id
     LIMIT $9 * ($8 = 'name asc')::int OFFSET $10 * ($8 = 'name asc')::int)
    UNION ALL
    (SELECT id, row_number() OVER (ORDER BY name DESC NULLS LAST, id) FROM matching
     ORDER BY name DESC NULLS LAST, id
     LIMIT $9 * ($8 = 'name desc')::int OFFSET $10 * ($8 = 'name desc')::int)
    UNION ALL
    (SELECT id, row_number() OVER (ORDER BY email, id) FROM matching
     ORDER BY email, id
     LIMIT $9 * ($8 = 'email asc')::int OFFSET $10 * ($8 = 'email asc')::int)
    UNION ALL
    (SELECT id, row_number() OVER (ORDER BY email DESC, id) FROM matching
     ORDER BY email DESC, id
     LIMIT $9 * ($8 = 'email desc')::int OFFSET $10 * ($8 = 'email desc')::int)
)
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at, u.last_login,
       u.total_uploads, u.total_storage_used, u.second_factor_at IS NOT NULL AS second_factor, t.total
FROM (SELECT count(*) AS total FROM matching) t
LEFT JOIN (page JOIN users u ON u.id = page.id) ON true
ORDER BY page.place
