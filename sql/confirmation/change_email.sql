-- Gives account $1 the confirmed address $3. $2: version of the credentials that the token is for and the password was
-- checked against; $4: key of the address; $5, $6: address and request id of the event. The account is settled from now
-- on, because its owner reads the mail of its address. The next version ends all tokens of mails. No row means that the
-- token is not valid any more. The unique index decides whether another account has the address.
WITH changed AS (
    UPDATE users
    SET email = $3,
        email_key = $4,
        is_settled = true,
        email_changed_at = now() - interval '1 day',
        credentials_version = credentials_version + 1,
        updated_at = now()
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'email.change', id, 'user', id, $5, $6 FROM changed
)
SELECT id FROM changed
