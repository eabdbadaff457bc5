-- Joins the identity of issuer $3, subject $4 and address $5 to account $1. $2: version of the credentials that were
-- checked; $6, $7: address and request id of the event. is_joined: the account has this identity, also from before; one of
-- another issuer, which people do not sign in by any more, is replaced. The unique index decides whether another account
-- has it. No row: the account was changed.
WITH account AS (
    SELECT id, identity_issuer, identity_subject FROM users
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), changed AS (
    UPDATE users SET identity_issuer = $3, identity_subject = $4, identity_email = $5
    FROM account WHERE users.id = account.id AND account.identity_issuer IS DISTINCT FROM $3
    RETURNING users.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'identity.join', id, 'user', id, $6, $7 FROM changed
)
SELECT coalesce(identity_issuer <> $3 OR identity_subject = $4, true) AS is_joined FROM account
