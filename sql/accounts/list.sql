-- A page of the accounts that match, in one of ten orders, and how many match in all. $1 to $9: the conditions, as
-- matching_users() has them. $10: the order, in which absent names and times are last; $11: accounts of a page; $12:
-- accounts before it. A page past the end is one row with the total alone.
-- The total comes first: role and activity alone have one that is kept, other conditions are counted. If few match, all
-- of them are sorted. If many do, an index in the order leads to the page after a few that do not match. So neither way
-- is long, wherever in the order the matches are, and no estimate decides between them. Without a condition all match.
-- The orders by last sign-in and by stored bytes have no index, which each sign-in or upload would have to change. All
-- that match are sorted, so the program runs few of these lists at a time.
-- PostgreSQL plans the query each time for its parameters: conditions that are null are dropped, and all branches but
-- one have a limit of 0, so they are not run. One plan for all parameters would read the whole table.
WITH matching AS NOT MATERIALIZED (
    SELECT user_id, created_at, name, email_key FROM matching_users($1, $2, $3, $4, $5, $6, $7, $8, $9)
), counted AS MATERIALIZED (
    SELECT CASE WHEN num_nonnulls($1, $2, $3, $4, $5, $8, $9) > 0 THEN (SELECT count(*) FROM matching)
           ELSE (SELECT coalesce(sum(accounts), 0)::bigint FROM account_totals
                 WHERE ($6 IS NULL OR role = $6) AND ($7 IS NULL OR is_active = $7)) END AS total
), few AS MATERIALIZED (
    SELECT * FROM matching
    WHERE num_nonnulls($1, $2, $3, $4, $5, $6, $7, $8, $9) > 0 AND (SELECT total BETWEEN 1 AND 10000 FROM counted)
), walk AS (
    SELECT CASE WHEN total <= $12::bigint THEN 0
                WHEN num_nonnulls($1, $2, $3, $4, $5, $6, $7, $8, $9) = 0 OR total > 10000 THEN $11::bigint
                ELSE 0 END AS accounts
    FROM counted
), page AS (
    SELECT user_id, place
    FROM unnest(
        ARRAY(SELECT user_id FROM matching ORDER BY created_at, user_id OFFSET $12
              LIMIT CASE WHEN $10::text = 'created_at asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY created_at DESC, user_id OFFSET $12
                 LIMIT CASE WHEN $10 = 'created_at desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY name, user_id OFFSET $12
                 LIMIT CASE WHEN $10 = 'name asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY name DESC NULLS LAST, user_id OFFSET $12
                 LIMIT CASE WHEN $10 = 'name desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM matching ORDER BY email_key, user_id OFFSET $12
                 LIMIT CASE WHEN $10 = 'email asc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        -- Several that wait may have one address; the index has these in the order of ids, so backward here.
        || ARRAY(SELECT user_id FROM matching ORDER BY email_key DESC, user_id DESC OFFSET $12
                 LIMIT CASE WHEN $10 = 'email desc' THEN (SELECT accounts FROM walk) ELSE 0 END)
        || ARRAY(SELECT user_id FROM few
                 ORDER BY CASE WHEN $10 = 'created_at asc' THEN created_at END,
                          CASE WHEN $10 = 'created_at desc' THEN created_at END DESC,
                          CASE $10 WHEN 'name asc' THEN name WHEN 'email asc' THEN email_key END,
                          CASE $10 WHEN 'name desc' THEN name WHEN 'email desc' THEN email_key END DESC NULLS LAST,
                          CASE WHEN $10 = 'email desc' THEN user_id END DESC, user_id OFFSET $12
                 LIMIT CASE WHEN $10 ~ '^(last_login|total_storage_used) ' THEN 0 ELSE $11 END)
        || ARRAY(SELECT user_id FROM matching JOIN users ON id = user_id
                 ORDER BY CASE $10 WHEN 'last_login asc' THEN last_login END,
                          CASE $10 WHEN 'last_login desc' THEN last_login END DESC NULLS LAST,
                          CASE $10 WHEN 'total_storage_used asc' THEN total_storage_used
                                   WHEN 'total_storage_used desc' THEN -total_storage_used END,
                          user_id OFFSET $12
                 LIMIT CASE WHEN $10 ~ '^(last_login|total_storage_used) ' THEN $11 ELSE 0 END)
    ) WITH ORDINALITY AS page (user_id, place)
)
SELECT a.*, counted.total
FROM counted
LEFT JOIN (page JOIN users u ON u.id = page.user_id CROSS JOIN account(u) a) ON true
ORDER BY page.place
