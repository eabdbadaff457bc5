-- The account with the identity of issuer $1 and subject $2, for a client with address $3; see sign_in/find_by_login
-- for the columns.
SELECT a.*, second_factor_at, second_factor_sealed, recovery_codes, wrong_codes >= 100 AS is_refused,
       extract(epoch FROM wrong_code_wait(wrong_code_times, wrong_code_networks, $3))::double precision AS wait_seconds
FROM users u, account(u) a
WHERE identity_issuer = $1 AND identity_subject = $2 AND NOT is_deleted
