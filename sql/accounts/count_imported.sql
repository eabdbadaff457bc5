-- How many accounts have an imported password hash whose check takes over $1 bytes, and the most that one takes. The
-- index of imported hashes has them all.
SELECT count(*) AS accounts, coalesce(max(memory), 0) AS memory
FROM users, LATERAL (
    SELECT CASE WHEN password_hash LIKE 'imported:$argon2id$%'
                THEN substring(password_hash FROM '\$m=([0-9]{1,9}),')::bigint * 1024
                WHEN password_hash LIKE 'imported:$scrypt$%'
                THEN 128 * substring(password_hash FROM ',r=([0-9]{1,9}),')::bigint
                     << substring(password_hash FROM '\$ln=([0-9]{1,2}),')::integer
                ELSE 4096 END AS memory
) hash
WHERE password_hash LIKE 'imported:%' AND memory > $1::bigint
