-- Queues the mail of a registration. $1: its username, or null; $2: its address; $3: the client's address; $4: the
-- sealed token of the mail; $5: key of the address. is_taken: an account has the username. wait_seconds: for how long
-- the mailbox gets no such mail, or null. In both cases nothing is queued or counted. It fails if too many of these
-- mails wait. It does not look for the address: it is the same work whether or not an account has it.
WITH admitted AS MATERIALIZED (
    SELECT is_taken, CASE WHEN NOT is_taken THEN registration_wait($5, sign_in_network($3)) END AS wait
    FROM (
        SELECT EXISTS (SELECT FROM users
                       WHERE folded(username) = folded($1) AND NOT is_deleted AND NOT is_development_admin) AS is_taken
    ) name
), queued AS (
    INSERT INTO outbox (kind, address, email_key, network, sealed_token)
    SELECT 'email_confirmation', $2, $5, sign_in_network($3), $4 FROM admitted WHERE NOT is_taken AND wait IS NULL
)
SELECT is_taken, ceil(extract(epoch FROM wait))::bigint AS wait_seconds FROM admitted
