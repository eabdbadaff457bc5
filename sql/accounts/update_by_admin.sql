-- Changes account $1 as an administrator asks. $2: username; $3: e-mail address; $4: display name; $5: role; $6:
-- permissions; $7: whether it is active; $8: password hash; null leaves a column as it is, and an empty name is none.
-- $9, $10, $11: actor, address and request id of the events; $12: version of the credentials that were checked, null if
-- none were; $13: whether an administrator's account is left as it is, because the request has a personal access token;
-- $14: key of the address; $15, $16: session and time of issue of the actor's access token, see
-- is_signed_in, both null for other actors; $17, $18: own quotas of bytes and of files, -1 for the default. No row
-- means that there is no such account, or that one of these conditions does not hold.
-- Another role, password or value of is_active ends the sessions, because their tokens carry the old role. The trigger
-- users_last_admin refuses to take away the last active admin.
-- The row is locked before it is compared, so that the events say what this statement changed, and not what another one
-- did meanwhile. Changes of address and password are events of their own; a request that changes nothing is none.
WITH locked AS (
    SELECT id, username, email, email_key, name, role, permissions, is_active, storage_quota, file_quota
    FROM users
    WHERE id = $1 AND credentials_version = coalesce($12, credentials_version) AND NOT ($13 AND role = 'admin')
      AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), before AS (
    SELECT * FROM locked WHERE $16::bigint IS NULL OR is_signed_in($9, $15, $16)
), changed AS (
    UPDATE users
    SET username = coalesce($2, before.username),
        email = coalesce($3, before.email),
        email_key = coalesce($14, before.email_key),
        name = nullif(coalesce($4, before.name), ''),
        role = coalesce($5, before.role),
        permissions = coalesce($6, before.permissions),
        is_active = coalesce($7, before.is_active),
        password_hash = coalesce($8, password_hash),
        credentials_version = credentials_version
                              + ($8 IS NOT NULL OR coalesce($3, before.email) <> before.email)::integer,
        sessions_ended_at = CASE
            WHEN $8 IS NOT NULL OR coalesce($5, before.role) <> before.role
                 OR coalesce($7, before.is_active) <> before.is_active THEN now()
            ELSE sessions_ended_at
        END,
        storage_quota = CASE WHEN $17::bigint IS NULL THEN before.storage_quota ELSE nullif($17, -1) END,
        file_quota = CASE WHEN $18::bigint IS NULL THEN before.file_quota ELSE nullif($18, -1) END,
        updated_at = now()
    FROM before
    WHERE users.id = before.id
    RETURNING users.*
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT change.action::audit_action, $9, 'user', c.id, $10, $11, change.details
    FROM changed c
    JOIN before b ON b.id = c.id
    CROSS JOIN LATERAL (
        SELECT array_remove(ARRAY[
            CASE WHEN c.username IS DISTINCT FROM b.username THEN 'username' END,
            CASE WHEN c.name IS DISTINCT FROM b.name THEN 'name' END,
            CASE WHEN c.role <> b.role THEN 'role' END,
            CASE WHEN c.permissions <> b.permissions THEN 'permissions' END,
            CASE WHEN c.is_active <> b.is_active THEN 'is_active' END,
            CASE WHEN c.storage_quota IS DISTINCT FROM b.storage_quota THEN 'storage_quota' END,
            CASE WHEN c.file_quota IS DISTINCT FROM b.file_quota THEN 'file_quota' END
        ], NULL) AS names
    ) fields
    CROSS JOIN LATERAL (VALUES
        ('email.change', c.email <> b.email, '{}'::jsonb),
        ('password.change', $8 IS NOT NULL, '{}'),
        ('user.update', fields.names <> '{}', jsonb_build_object(
            'fields', fields.names,
            'old', jsonb_build_object('role', b.role, 'is_active', b.is_active),
            'new', jsonb_build_object('role', c.role, 'is_active', c.is_active)
        ))
    ) change (action, has_happened, details)
    WHERE change.has_happened
)
SELECT a.*, CASE WHEN sessions_ended_at = now() THEN end_sessions(a.id) END
FROM changed, account(changed) a
