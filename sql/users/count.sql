-- The number of accounts, active or not.
SELECT count(*) AS accounts FROM users WHERE NOT is_deleted AND password_hash IS NOT NULL
