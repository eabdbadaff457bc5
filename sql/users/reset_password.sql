-- Uses a password reset token. $1: user; $2: version of the credentials the token was made for; $3: the new password
-- hash; $4: id of the record of the use; $5: hash of the token; $6: when the token expires; $7, $8: address and request
-- id of the event.
-- New password, record and end of all sessions happen together or not at all. The version allows one use, and none
-- after the password, the e-mail address or is_active has changed. The account is settled from now on, because its
-- owner reads the mail of its address, which is confirmed thereby. No row means that the token is not valid.
WITH before AS (
    SELECT id, email_confirmed FROM users WHERE id = $1 FOR NO KEY UPDATE
), changed AS (
    UPDATE users
    SET password_hash = $3,
        credentials_version = credentials_version + 1,
        is_settled = true,
        email_changed_at = NULL,
        email_confirmed = true,
        email_to_confirm = CASE WHEN before.email_confirmed THEN email_to_confirm END,
        confirmation_ends_at = CASE WHEN before.email_confirmed THEN confirmation_ends_at END,
        sessions_ended_at = now(),
        updated_at = now()
    FROM before
    WHERE users.id = before.id AND credentials_version = $2 AND is_active AND NOT is_deleted
      AND NOT is_development_admin AND (before.email_confirmed OR confirmation_ends_at > now())
    RETURNING users.id, NOT before.email_confirmed AS is_confirmed
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT action::audit_action, id, 'user', id, $7, $8
    FROM changed,
         LATERAL (VALUES ('password.reset', true), ('email.confirm', is_confirmed)) event (action, has_happened)
    WHERE has_happened
)
INSERT INTO used_password_reset_tokens (id, user_id, token_hash, expires_at)
SELECT $4, id, $5, $6 FROM changed, end_sessions(changed.id)
RETURNING user_id
