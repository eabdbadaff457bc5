-- The second factor of user $1, if it has or is offered one, for a client with address $2; see sign_in/find_by_login
-- for the columns. The time of an offer that is over is in the past.
SELECT second_factor_at, second_factor_sealed, second_factor_pending_until > now() AS is_pending, recovery_codes,
       wrong_codes >= 100 AS is_refused,
       extract(epoch FROM wrong_code_wait(wrong_code_times, wrong_code_networks, $2))::double precision AS wait_seconds
FROM users
WHERE id = $1 AND second_factor_sealed IS NOT NULL AND NOT is_deleted
