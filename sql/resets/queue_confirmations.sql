-- Takes up to a hundred requests for mails that confirm an address, the oldest first, and queues one for the account
-- that asked for the address last, if any does, unless one waits to be sent already. The trigger outbox_limits drops
-- what is too much. Returns how many requests it took.
WITH taken AS (
    DELETE FROM password_reset_requests
    WHERE id = ANY (ARRAY(
        SELECT id FROM password_reset_requests WHERE is_confirmation ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, email, email_ascii, address
), asking AS (
    SELECT DISTINCT ON (u.id) u.id, u.email_to_confirm, taken.address
    FROM taken CROSS JOIN LATERAL (
        SELECT id, email_to_confirm FROM users
        WHERE email_to_confirm = lower(coalesce(taken.email_ascii, taken.email)) AND confirmation_ends_at > now()
          AND is_active
        ORDER BY confirmation_ends_at DESC, id LIMIT 1
    ) u
    WHERE NOT EXISTS (SELECT FROM outbox
                      WHERE user_id = u.id AND kind = 'email_confirmation' AND failed_at IS NULL)
    ORDER BY u.id
), queued AS (
    INSERT INTO outbox (kind, user_id, network)
    SELECT 'email_confirmation', id, sign_in_network(address) FROM asking ORDER BY mailbox(email_to_confirm)
)
SELECT count(*) AS requests FROM taken
