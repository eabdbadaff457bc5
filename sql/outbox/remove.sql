-- Removes message $1, which was sent, or which must not be sent any more. If it is about a password reset, the two
-- minutes in which the account gets no other begin now, because the message may have waited for long.
WITH removed AS (
    DELETE FROM outbox WHERE id = $1 RETURNING user_id, kind
)
UPDATE password_reset_messages SET sent_at[1] = now()
FROM removed
WHERE password_reset_messages.user_id = removed.user_id AND removed.kind = 'password_reset'
