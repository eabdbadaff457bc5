-- Removes message $1, which was sent or is not wanted any more. A message about a password reset counts from now on
-- for the two minutes until the next one, because it may have waited for long.
WITH removed AS (
    DELETE FROM outbox WHERE id = $1 RETURNING user_id, kind
)
UPDATE password_reset_messages SET sent_at[1] = now()
FROM removed
WHERE password_reset_messages.user_id = removed.user_id AND removed.kind = 'password_reset'
