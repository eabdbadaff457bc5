-- Queues the mail of a registration. $1: its username, or null; $2: its address, in ASCII where it has such a form; $3:
-- the client's address; $4: the sealed token of the mail. is_taken: an account has the username. wait_seconds: for how
-- long the mailbox gets no such mail, or null. In both cases nothing is queued or counted. It fails if too many of
-- these mails wait. It does not look for the address: it is the same work whether or not an account has it.
WITH admitted AS MATERIALIZED (
    SELECT is_taken, CASE WHEN NOT is_taken THEN registration_wait($2, sign_in_network($3)) END AS wait
    FROM (
        SELECT EXISTS (SELECT FROM users
                       WHERE lower(username) = lower($1) AND NOT is_deleted AND NOT is_development_admin) AS is_taken
    ) name
), queued AS (
    INSERT INTO outbox (kind, address, network, sealed_token)
    SELECT 'email_confirmation', $2, sign_in_network($3), $4 FROM admitted WHERE NOT is_taken AND wait IS NULL
)
SELECT is_taken, ceil(extract(epoch FROM wait))::bigint AS wait_seconds FROM admitted
