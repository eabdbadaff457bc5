-- The account with username or e-mail address $1, for a login of a client with address $2, and the client's network,
-- if the account has signed in from there within the last 30 days. $3: key of the e-mail address.
-- A username cannot contain "@", so at most one account matches, other than one that was made for tests; then that with
-- the address counts. If none matches, the one row has no id: the work is the same for every name. is_refused: no code
-- is taken until the password is another one; wait_seconds: for how long none is taken from the client's network, or
-- null.
SELECT a.*, password_hash, second_factor_at, second_factor_sealed, recovery_codes, wrong_codes >= 100 AS is_refused,
       extract(epoch FROM wrong_code_wait(wrong_code_times, wrong_code_networks, $2))::double precision AS wait_seconds,
       (
           SELECT network::text FROM sign_in_networks
           WHERE user_id = coalesce(a.id, '00000000-0000-0000-0000-000000000000')
             AND network = sign_in_network($2) AND last_sign_in_at > now() - interval '30 days'
       ) AS known_network
FROM (SELECT) AS always LEFT JOIN LATERAL (
    SELECT users.*
    FROM (
        SELECT id, 1 AS rank FROM users WHERE email_key = $3 AND NOT is_deleted AND NOT is_development_admin
        UNION ALL
        SELECT id, 2 FROM users WHERE folded(username) = folded($1) AND NOT is_deleted AND NOT is_development_admin
    ) named JOIN users USING (id)
    ORDER BY rank LIMIT 1
) AS found ON true
LEFT JOIN LATERAL account(found) a ON true
