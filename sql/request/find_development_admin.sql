-- The development admin, whose id is $1, if it is usable.
SELECT a.* FROM users u, account(u) a
WHERE u.id = $1 AND u.is_active AND NOT is_deleted
