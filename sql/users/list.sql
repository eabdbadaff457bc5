-- A page of the accounts that match, in one of six orders, and how many match in all. $1: LIKE pattern for the e-mail
-- address; $2: for the display name; $3: for the username or the e-mail address; $4: role; $5: whether active; $6:
-- created not before; $7: created not after; a null is no condition. $8: the order, in which absent names are last; $9:
-- accounts of a page; $10: accounts before it. A page past the end is one row with the total alone.
-- The total comes first: role and activity alone have one that is kept, other conditions are counted. If few match, all
-- of them are sorted. If many do, an index in the order leads to the page after a few that do not match. So neither way
-- is long, wherever in the order the matches are, and no estimate decides between them. Without a condition all match.
-- PostgreSQL plans the query each time for its parameters: conditions that are null are dropped, and all branches but
-- one have a limit of 0, so they are not run. One plan for all parameters would read the whole table.
WITH matching AS NOT MATERIALIZED (
    SELECT user_id, created_at, name, email_key
    FROM listed_users
    WHERE ($1::text IS NULL OR email LIKE lower($1))
      AND ($2::text IS NULL OR name LIKE lower($2))
      AND ($3::text IS NULL OR username LIKE lower($3) OR email LIKE lower($3))
      AND ($4::text IS NULL OR role = $4)
      AND ($5::boolean IS NULL OR is_active = $5)
      AND ($6::timestamptz IS NULL OR created_at >= $6)
      AND ($7::timestamptz IS NULL OR created_at <= $7)
), counted AS MATERIALIZED (
    SELECT CASE WHEN num_nonnulls($1, $2, $3, $6, $7) > 0 THEN (SELECT count(*) FROM matching)
           ELSE (SELECT coalesce(sum(accounts), 0)::bigint FROM account_totals
                 WHERE ($4 IS NULL OR role = $4) AND ($5 IS NULL OR is_active = $5)) END AS total
), few AS MATERIALIZED (
    SELECT * FROM matching
    WHERE num_nonnulls($1, $2, $3, $4, $5, $6, $7) > 0 AND (SELECT total BETWEEN 1 AND 10000 FROM counted)
), walk AS (
    SELECT CASE WHEN total <= $10::bigint THEN 0
                WHEN num_nonnulls($1, $2, $3, $4, $5, $6, $7) = 0 OR total > 10000 THEN $9::bigint
                ELSE 0 END AS accounts
    FROM counted
), page AS (
    SELECT user_id, place
    FROM unnest(
        ARRAY(SELECT user_id FROM matching ORDER BY created_at, user_id OFFSET $10
              LIMIT CASE WHEN $8::text = 'created_at asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY created_at DESC, user_id OFFSET $10
                 LIMIT CASE WHEN $8 = 'created_at desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY name, user_id OFFSET $10
                 LIMIT CASE WHEN $8 = 'name asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY name DESC NULLS LAST, user_id OFFSET $10
                 LIMIT CASE WHEN $8 = 'name desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        -- No two accounts have the same address.
        || ARRAY(SELECT user_id FROM matching ORDER BY email_key OFFSET $10
                 LIMIT CASE WHEN $8 = 'email asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY email_key DESC OFFSET $10
                 LIMIT CASE WHEN $8 = 'email desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM few
                 ORDER BY CASE WHEN $8 = 'created_at asc' THEN created_at END,
                          CASE WHEN $8 = 'created_at desc' THEN created_at END DESC,
                          CASE $8 WHEN 'name asc' THEN name WHEN 'email asc' THEN email_key END,
                          CASE $8 WHEN 'name desc' THEN name WHEN 'email desc' THEN email_key END DESC NULLS LAST,
                          user_id
                 LIMIT $9 OFFSET $10)
    ) WITH ORDINALITY AS page (user_id, place)
)
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at, u.last_login,
       u.total_uploads, u.total_storage_used, u.second_factor_at IS NOT NULL AS second_factor, counted.total
FROM counted
LEFT JOIN (page JOIN users u ON u.id = page.user_id) ON true
ORDER BY page.place
