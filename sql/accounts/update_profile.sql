-- A user's changes to their own account $1. $2: username; $3: e-mail address; $4: display name; null leaves a column
-- as it is, and an empty name is none. $5: version of the credentials that were checked, or that the sealed token is
-- for, null if there are none; $6, $7: address and request id of the events; $8: key of the e-mail address; $9, $10:
-- session and time of issue of the access token, see is_signed_in, both null if there is none; $11: if another address
-- must be confirmed before it counts, the sealed token of the mail to it, else null. No row means that the account was
-- deleted, its credentials changed, or the session ended, in the meantime: whoever has stolen a session must not move
-- the account to another address after its owner has ended it.
-- An address that must be confirmed is only a wish, as waits says, which is told at both addresses. wait_seconds: the
-- account has had so many wishes that it has no other one for so long; then nothing is changed, and the row has no id.
-- Another e-mail address increments the version of the credentials, so that reset tokens that were sent to the old one
-- become invalid. The row is locked before it is compared, so that the events say what this statement changed, and not
-- what another one did meanwhile. A change of the address is an event of its own; a request that changes nothing is
-- none.
WITH locked AS (
    SELECT id, username, email, email_key, name FROM users
    WHERE id = $1 AND credentials_version = coalesce($5, credentials_version) AND NOT is_deleted
    FOR NO KEY UPDATE
), asked AS MATERIALIZED (
    SELECT *, $11::bytea IS NOT NULL AND $8 <> email_key AS waits
    FROM locked WHERE $10::bigint IS NULL OR is_signed_in(id, $9, $10)
), before AS MATERIALIZED (
    SELECT *, CASE WHEN waits THEN email ELSE coalesce($3, email) END AS new_email,
           CASE WHEN waits THEN email_key ELSE coalesce($8, email_key) END AS new_key,
           CASE WHEN waits THEN mail_wait('wish of ' || id, 5) END AS wait
    FROM asked
), changed AS (
    UPDATE users
    SET username = coalesce($2, before.username),
        email = new_email,
        email_key = new_key,
        name = nullif(coalesce($4, before.name), ''),
        credentials_version = credentials_version + (new_email <> before.email)::integer,
        updated_at = now()
    FROM before
    WHERE users.id = before.id AND wait IS NULL
    RETURNING users.*
), message AS (
    INSERT INTO outbox (kind, user_id, address, email_key, network, sealed_token)
    SELECT kind, id, message.address, message.key, CASE WHEN token IS NOT NULL THEN sign_in_network($6) END, token
    FROM before, LATERAL (VALUES ('email_confirmation', $3, $8, $11),
                                 ('email_change_requested', email, email_key, NULL)) message (kind, address, key, token)
    WHERE waits AND wait IS NULL
    ORDER BY mailbox(message.key)
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT change.action::audit_action, c.id, 'user', c.id, $6, $7, change.details
    FROM changed c
    JOIN before b ON b.id = c.id
    CROSS JOIN changed_columns(to_jsonb(b), to_jsonb(c), ARRAY['username', 'name']) names
    CROSS JOIN LATERAL (VALUES
        ('email.change', c.email <> b.email, '{}'::jsonb),
        ('email.change_request', b.waits, '{}'),
        ('user.update', names <> '{}', jsonb_build_object('fields', names))
    ) change (action, has_happened, details)
    WHERE change.has_happened
)
SELECT a.*, waits, ceil(extract(epoch FROM wait))::bigint AS wait_seconds
FROM before LEFT JOIN (changed CROSS JOIN account(changed) a) ON a.id = before.id
