SELECT count(*) FROM users WHERE NOT is_deleted AND password_hash IS NOT NULL
