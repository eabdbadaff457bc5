-- The number of rows of an export of accounts whose address matches. $1: LIKE pattern for the e-mail address; $2: where
-- to stop counting, because more rows than the limit are refused however many there are.
SELECT count(*) AS accounts FROM (SELECT FROM listed_users WHERE email LIKE folded($1) LIMIT $2) found
