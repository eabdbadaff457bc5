-- Takes up to a hundred requests for password resets, the oldest first, writes an event for each that has the address
-- of an active account, and queues a message for each of these accounts; returns how many requests it took and how
-- many messages it queued.
-- An account gets at most one message in two minutes, and after ten in a day one an hour; further requests are dropped,
-- and so are those for other addresses. The condition of the update decides that, also between several processes:
-- unlike a SELECT it sees the row as the process before it left it. The order of the ids prevents deadlocks.
-- With IN in place of ANY (ARRAY ...), here and in the sweeps, a planner that expects few rows runs the subquery anew
-- for each of them. Every run locks other rows, so the limit does not hold, and the work grows with the square of their
-- number.
WITH taken AS (
    DELETE FROM password_reset_requests
    WHERE id = ANY (ARRAY(SELECT id FROM password_reset_requests ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED))
    RETURNING email, requested_at, address, request_id
), known AS (
    SELECT u.id, taken.requested_at, taken.address, taken.request_id
    FROM taken JOIN users u ON lower(u.email) = lower(taken.email)
    WHERE u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
), event AS (
    INSERT INTO audit_events (at, action, subject_type, subject_id, address, request_id)
    SELECT requested_at, 'password.reset_request', 'user', id, address, request_id FROM known
), accounts AS (
    SELECT DISTINCT id FROM known
    WHERE NOT EXISTS (SELECT FROM outbox
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
    INSERT INTO outbox (kind, user_id) SELECT 'password_reset', user_id FROM admitted
    ON CONFLICT (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL DO NOTHING
    RETURNING id
)
SELECT (SELECT count(*) FROM taken) AS requests, (SELECT count(*) FROM queued) AS messages
