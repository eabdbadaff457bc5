-- Removes message $1, which was sent, if $2 is true, or else must not be sent any more. If it is about a password
-- reset, the two minutes in which the account gets no other begin now, because the message may have waited for long.
-- Once a message was sent, up to a hundred others are due that wait because the mail server could not be used; each of
-- them that is sent does the same. One that another process has taken does not wait, so nobody sends it twice.
WITH removed AS (
    DELETE FROM outbox WHERE id = $1 RETURNING user_id, kind
), woken AS (
    UPDATE outbox SET due_at = now()
    WHERE id = ANY (ARRAY(SELECT id FROM outbox WHERE waits_for_server AND due_at > now() AND $2
                          ORDER BY priority, due_at LIMIT 100 FOR UPDATE SKIP LOCKED))
)
UPDATE password_reset_messages SET sent_at[1] = now()
FROM removed
WHERE password_reset_messages.user_id = removed.user_id AND removed.kind = 'password_reset'
