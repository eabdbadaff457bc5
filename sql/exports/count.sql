-- Rows of an export, counted no further than $2. $1: pattern for the e-mail address.
SELECT count(*) FROM (
    SELECT FROM users
    WHERE NOT is_deleted AND password_hash IS NOT NULL AND ($1::text IS NULL OR lower(email) LIKE lower($1))
    LIMIT $2
) found
