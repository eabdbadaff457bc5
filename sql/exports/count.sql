-- The number of rows of an export. $1: LIKE pattern for the e-mail address, null for all; $2: where to stop counting,
-- because more rows than the limit are refused however many there are.
SELECT count(*) AS accounts FROM (
    SELECT FROM users
    WHERE NOT is_deleted AND NOT is_development_admin AND ($1::text IS NULL OR lower(email) LIKE lower($1))
    LIMIT $2
) found
