-- Uses a password reset token. $1: user; $2: version of the credentials the token was made for; $3: the new password
-- hash, or null; $4: id of the record of the use; $5: hash of the token; $6: when the token expires; $7, $8: address
-- and request id of the event; $9, $10, $11: issuer, subject and address of the identity that the account has in place
-- of a password, or null. Whoever proves the mailbox has the account alone, so the former password and the former
-- identity end. New password, record and end of all sessions happen together or not at all. The version allows one
-- use, and none after the password, the e-mail address or is_active has changed. The account is settled from now on,
-- because its owner reads the mail of its address. No row means that the token is not valid.
WITH changed AS (
    UPDATE users
    SET password_hash = $3,
        identity_issuer = $9,
        identity_subject = $10,
        identity_email = $11,
        credentials_version = credentials_version + 1,
        is_settled = true,
        email_changed_at = NULL,
        sessions_ended_at = now(),
        updated_at = now()
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted AND NOT is_development_admin
    RETURNING id, identity_subject
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT action, id, 'user', id, $7, $8
    FROM changed, unnest('{password.reset, identity.join}'::audit_action[]) action
    WHERE action = 'password.reset' OR identity_subject IS NOT NULL
)
INSERT INTO used_password_reset_tokens (id, user_id, token_hash, expires_at)
SELECT $4, id, $5, $6 FROM changed, end_sessions(changed.id)
RETURNING user_id
