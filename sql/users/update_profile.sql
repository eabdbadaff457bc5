-- A user's changes to their own account $1. $2: username; $3: e-mail address; $4: display name; null leaves a column
-- as it is, and an empty name is none. $5: version of the credentials that were checked, null if none were; $6, $7:
-- address and request id of the events; $8: ASCII form of the address, if it differs; $9, $10: session and time of
-- issue of the access token, see is_signed_in, both null if there is none; $11: whether another address waits until it
-- is confirmed; $12: whether the one that waits is taken back. A wish that is repeated keeps its time. No row means
-- that the account was deleted, its credentials changed, or the session ended, in the meantime: whoever has stolen a
-- session must not move the account to another address after its owner has ended it. One that waits is told at both
-- addresses. Another e-mail address increments the version of the credentials, so that reset tokens that were sent to
-- the old one become invalid. The row is locked before it is compared, so that the events say what this statement
-- changed, and not what another one did meanwhile. A change of the address is an event of its own; a request that
-- changes nothing is none.
WITH locked AS (
    SELECT id, username, email, email_ascii, name FROM users
    WHERE id = $1 AND credentials_version = coalesce($5, credentials_version) AND NOT is_deleted
    FOR NO KEY UPDATE
), before AS (
    SELECT *, CASE WHEN waits THEN email ELSE coalesce($3, email) END AS new_email
    FROM locked CROSS JOIN LATERAL (
        SELECT lower(coalesce($8, $3)) AS email_key,
               $11 AND coalesce(lower(coalesce($8, $3)) <> lower(coalesce(email_ascii, email)), false) AS waits,
               $3 IS NULL AND NOT $12 AS keeps
    ) wish
    WHERE $10::bigint IS NULL OR is_signed_in(id, $9, $10)
), changed AS (
    UPDATE users
    SET username = coalesce($2, before.username),
        email = new_email,
        email_ascii = CASE WHEN lower(new_email) <> lower(before.email) THEN $8 ELSE before.email_ascii END,
        name = nullif(coalesce($4, before.name), ''),
        credentials_version = credentials_version + (new_email <> before.email)::integer,
        pending_email = CASE WHEN waits THEN $3 WHEN keeps THEN pending_email END,
        email_to_confirm = CASE WHEN waits THEN email_key WHEN keeps THEN email_to_confirm END,
        confirmation_ends_at = CASE
            WHEN keeps OR waits AND email_to_confirm = email_key AND confirmation_ends_at > now()
            THEN confirmation_ends_at
            WHEN waits THEN now() + interval '48 hours'
        END,
        updated_at = now()
    FROM before
    WHERE users.id = before.id
    RETURNING users.*, waits
), message AS (
    INSERT INTO outbox (kind, user_id, network)
    SELECT kind, id, CASE kind WHEN 'email_confirmation' THEN sign_in_network($6) END
    FROM changed, (VALUES ('email_confirmation'), ('email_change_requested')) message (kind)
    WHERE waits
    ORDER BY mailbox(CASE kind WHEN 'email_confirmation' THEN email_to_confirm ELSE coalesce(email_ascii, email) END)
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT change.action::audit_action, c.id, 'user', c.id, $6, $7, change.details
    FROM changed c
    JOIN before b ON b.id = c.id
    CROSS JOIN LATERAL (
        SELECT array_remove(ARRAY[
            CASE WHEN c.username IS DISTINCT FROM b.username THEN 'username' END,
            CASE WHEN c.name IS DISTINCT FROM b.name THEN 'name' END
        ], NULL) AS names
    ) fields
    CROSS JOIN LATERAL (VALUES
        ('email.change', c.email <> b.email, '{}'::jsonb),
        ('email.change_request', c.waits, '{}'),
        ('user.update', fields.names <> '{}', jsonb_build_object('fields', fields.names))
    ) change (action, has_happened, details)
    WHERE change.has_happened
)
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, storage_quota, file_quota, email_confirmed, pending_email,
       second_factor_at IS NOT NULL AS second_factor
FROM changed
