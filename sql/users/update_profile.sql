-- A user's changes to their own account $1. $2: username; $3: e-mail address; $4: display name; null leaves a column
-- as it is, and an empty name is none. $5: version of the credentials that were checked, null if none were; $6, $7:
-- address and request id of the events; $8: ASCII form of the address, if it differs; $9, $10: session and time of
-- issue of the access token, see is_signed_in, both null if there is none. No row means that the account was deleted,
-- its credentials changed, or the session ended, in the meantime: whoever has stolen a session must not move the
-- account to another address after its owner has ended it. Another e-mail address increments the version of the
-- credentials, so that reset tokens that were sent to the old one become invalid. The row is locked before it is
-- compared, so that the events say what this statement changed, and not what another one did meanwhile. A change of the
-- address is an event of its own; a request that changes nothing is none.
WITH locked AS (
    SELECT id, username, email, email_ascii, name FROM users
    WHERE id = $1 AND credentials_version = coalesce($5, credentials_version) AND NOT is_deleted
    FOR NO KEY UPDATE
), before AS (
    SELECT * FROM locked WHERE $10::bigint IS NULL OR is_signed_in(id, $9, $10)
), changed AS (
    UPDATE users
    SET username = coalesce($2, before.username),
        email = coalesce($3, before.email),
        email_ascii = CASE WHEN lower($3) <> lower(before.email) THEN $8 ELSE before.email_ascii END,
        name = nullif(coalesce($4, before.name), ''),
        credentials_version = credentials_version + (coalesce($3, before.email) <> before.email)::integer,
        updated_at = now()
    FROM before
    WHERE users.id = before.id
    RETURNING users.*
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
        ('user.update', fields.names <> '{}', jsonb_build_object('fields', fields.names))
    ) change (action, has_happened, details)
    WHERE change.has_happened
)
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, storage_quota, file_quota, second_factor_at IS NOT NULL AS second_factor
FROM changed
