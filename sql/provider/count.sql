-- The active accounts with an identity of another issuer than $1, and those that have none of this issuer nor are of an
-- administrator with a password.
SELECT count(*) FILTER (WHERE identity_issuer <> $1) AS elsewhere,
       count(*) FILTER (WHERE identity_issuer IS DISTINCT FROM $1
                          AND (role <> 'admin' OR password_hash IS NULL)) AS locked_out
FROM users
WHERE is_active AND NOT is_deleted AND NOT is_development_admin
