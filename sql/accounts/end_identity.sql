-- Ends the identity of account $1, and so its sessions and personal tokens, if it has one. $2: version of the
-- credentials that were checked, or null; $3, $4, $5: actor, address and request id of the event. No row: there is no
-- such account, or it was changed.
WITH account AS (
    SELECT id, identity_subject FROM users
    WHERE id = $1 AND credentials_version = coalesce($2, credentials_version)
      AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), changed AS (
    UPDATE users SET identity_issuer = NULL, identity_subject = NULL
    FROM account WHERE users.id = account.id AND account.identity_subject IS NOT NULL
    RETURNING users.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'identity.leave', $3, 'user', id, $4, $5 FROM changed
)
SELECT id FROM account
