-- The number of rows of an export. $1: LIKE pattern for the e-mail address, null for all; $2: where to stop counting,
-- because more rows than the limit are refused however many there are.
SELECT count(*) AS accounts FROM (
    SELECT FROM listed_users WHERE $1::text IS NULL OR email LIKE lower($1) LIMIT $2
) found
