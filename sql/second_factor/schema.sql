-- How long no code is taken from the client's network, because it has sent ten wrong ones within an hour; null if one
-- is. It is null and costs nothing for accounts without wrong codes.
CREATE FUNCTION wrong_code_wait(times timestamptz[], networks cidr[], client inet) RETURNS interval
LANGUAGE sql STABLE STRICT AS $$
    SELECT sent.at + interval '1 hour' - now()
    FROM unnest(times, networks) sent (at, network)
    WHERE sent.network = sign_in_network(client) AND sent.at > now() - interval '1 hour'
    ORDER BY sent.at DESC OFFSET 9 LIMIT 1
$$;

-- Whether a code of this time step, or a recovery code with this hash, is taken from this client. One of the two is
-- null. As a condition of an UPDATE it is evaluated for the row as it is once it is locked, so of parallel requests
-- with one code one finds that it is taken.
CREATE FUNCTION takes_code(account users, client inet, step bigint, recovery_code bytea) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT account.wrong_codes < 100
           AND wrong_code_wait(account.wrong_code_times, account.wrong_code_networks, client) IS NULL
           AND (step > coalesce(account.second_factor_step, 0) OR recovery_code = ANY (account.recovery_codes))
$$;
