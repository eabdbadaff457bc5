-- The account with id $1, active or not.
SELECT a.* FROM users u, account(u) a
WHERE u.id = $1 AND NOT is_deleted AND NOT is_development_admin
