-- Queues a mail with a link to choose a password for account $1, unless one waits to be sent: an invitation if the
-- account has no password and nobody has ever signed in to it, else a password reset. An invitation of an import, which
-- may wait for a day, is due now. $2: the administrator; $3, $4: address and request id of the event. Returns whether
-- the account is active, without which nothing is queued. No row: there is no such account.
WITH account AS (
    SELECT id, is_active,
           CASE WHEN password_hash IS NULL AND last_login IS NULL THEN 'invitation' ELSE 'password_reset' END AS kind
    FROM users WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
), waiting AS (
    UPDATE outbox SET due_at = now(), is_imported = false
    FROM account
    WHERE user_id = $1 AND is_imported AND account.kind = 'invitation' AND attempts = 0
), message AS (
    INSERT INTO outbox (kind, user_id)
    SELECT kind, id FROM account
    WHERE is_active AND NOT EXISTS (SELECT FROM outbox
                                    WHERE user_id = $1 AND kind = account.kind AND failed_at IS NULL)
    ON CONFLICT (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL DO NOTHING
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'password.reset_request', $2, 'user', id, $3, $4 FROM account WHERE is_active
)
SELECT is_active FROM account
