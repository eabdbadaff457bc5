-- Counts a wrong code for user $1 from a client with address $2. No row means that no code is taken from there: either
-- its network has sent ten wrong ones within an hour, or there were a hundred since the last right one. Parallel
-- requests wait for the lock of the row, and the conditions see what the one before left, so the limits are exact.
UPDATE users
SET wrong_codes = wrong_codes + 1,
    wrong_code_times = now() || ARRAY(
        SELECT sent.at FROM unnest(wrong_code_times) sent (at) WHERE sent.at > now() - interval '1 hour'
    ),
    wrong_code_networks = sign_in_network($2) || ARRAY(
        SELECT sent.network FROM unnest(wrong_code_times, wrong_code_networks) sent (at, network)
        WHERE sent.at > now() - interval '1 hour'
    )
WHERE id = $1 AND second_factor_at IS NOT NULL AND wrong_codes < 100
  AND wrong_code_wait(wrong_code_times, wrong_code_networks, $2) IS NULL
RETURNING id
