-- The number of rows of an export of accounts that match. $1 to $9: the conditions, as matching_users() has them; $10:
-- where to stop counting, because more rows than the limit are refused however many there are.
SELECT count(*) AS accounts
FROM (SELECT FROM matching_users($1, $2, $3, $4, $5, $6, $7, $8, $9) LIMIT $10) found
