-- The number of accounts, active or not.
SELECT count(*) AS accounts FROM users WHERE NOT is_deleted AND NOT is_development_admin
