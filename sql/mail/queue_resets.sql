-- Takes up to a hundred requests for password resets, the oldest first, and for each active account that has one of the
-- addresses writes an event and queues a message; returns how many requests there were, at least. Only those of former
-- seconds are taken, by whichever process: so the time of the client's next request does not tell whether there was an
-- account to work for.
-- The account of an address is found as sign_in/find_by_login does.
-- The event is about the first request. If there was an event about the account within two minutes, it has a row in
-- password_reset_counts, and all requests are only counted there: the number that is returned is smaller than that of
-- the requests only if the row is new.
-- An account gets at most one message in two minutes, and after ten in a day one an hour; further requests are dropped,
-- and so are those for other addresses. The condition of the update decides that, also between several processes:
-- unlike a SELECT it sees the row as the process before it left it. The trigger outbox_limits then drops messages
-- beyond what a mailbox may get. The order of the ids, and that of the mailboxes, prevents deadlocks.
-- With IN in place of ANY (ARRAY ...), here and in the sweeps, a planner that expects few rows runs the subquery anew
-- for each of them. Every run locks other rows, so the limit does not hold, and the work grows with the square of their
-- number.
WITH taken AS (
    DELETE FROM password_reset_requests
    WHERE id = ANY (ARRAY(
        SELECT id FROM password_reset_requests WHERE requested_at < date_trunc('second', now())
        ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, email_key, requested_at, address, request_id
), known AS (
    SELECT u.id, taken.requested_at, taken.address, taken.request_id,
           row_number() OVER (PARTITION BY u.id ORDER BY taken.id) AS place,
           count(*) OVER (PARTITION BY u.id) AS requests
    FROM taken CROSS JOIN LATERAL (
        SELECT id, is_active FROM users
        WHERE email_key = taken.email_key AND NOT is_deleted AND NOT is_development_admin
    ) AS u
    WHERE u.is_active
), counted AS (
    INSERT INTO password_reset_counts AS earlier (user_id, requests)
    SELECT id, requests - 1 FROM known WHERE place = 1 ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET requests = earlier.requests + excluded.requests + 1
    RETURNING user_id, requests
), event AS (
    INSERT INTO audit_events (at, action, subject_type, subject_id, address, request_id)
    SELECT known.requested_at, 'password.reset_request', 'user', known.id, known.address, known.request_id
    FROM known JOIN counted ON counted.user_id = known.id AND counted.requests < known.requests
    WHERE known.place = 1
), accounts AS (
    SELECT id, address FROM known
    WHERE place = 1 AND NOT EXISTS (SELECT FROM outbox
                                    WHERE outbox.user_id = known.id AND kind = 'password_reset' AND failed_at IS NULL)
), admitted AS (
    INSERT INTO password_reset_messages AS earlier (user_id, sent_at)
    SELECT id, ARRAY[now()] FROM accounts ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET sent_at = (now() || earlier.sent_at)[1:10]
    WHERE earlier.sent_at[1] <= now() - interval '2 minutes'
      AND (earlier.sent_at[1] <= now() - interval '1 hour'
           OR earlier.sent_at[10] IS NULL OR earlier.sent_at[10] <= now() - interval '1 day')
    RETURNING user_id
), queued AS (
    INSERT INTO outbox (kind, user_id, network)
    SELECT 'password_reset', u.id, sign_in_network(accounts.address)
    FROM admitted JOIN accounts ON accounts.id = admitted.user_id JOIN users u ON u.id = admitted.user_id
    ORDER BY mailbox(u.email_key)
    ON CONFLICT (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL DO NOTHING
)
SELECT count(*) AS requests FROM password_reset_requests
