-- Changes account $1 as an administrator asks. $2: the columns to change as a JSON object: an absent one stays, null is
-- no quota of one's own, and an empty name is none; $3: key of the e-mail address, null if that stays; $4: version of
-- the credentials that were checked, null if none were; $5: whether an administrator's account is left as it is,
-- because the request has a personal access token; $6, $7: session and time of issue of the actor's access token, see
-- is_signed_in, both null for other actors; $8, $9, $10: actor, address and request id of the events. No row means that
-- there is no such account, or that one of these conditions does not hold.
-- Another role, password or value of is_active ends the sessions, because their tokens carry the old role, and another
-- password the identity. The trigger users_last_admin refuses to take away the last active admin.
-- The row is locked before it is compared, so that the events say what this statement changed, and not what another one
-- did meanwhile. Changes of address and password are events of their own; a request that changes nothing is none.
WITH locked AS (
    SELECT * FROM users
    WHERE id = $1 AND credentials_version = coalesce($4, credentials_version) AND NOT ($5 AND role = 'admin')
      AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), before AS (
    SELECT * FROM locked WHERE $7::bigint IS NULL OR is_signed_in($8, $6, $7)
), changed AS (
    UPDATE users
    SET username = new.username,
        email = new.email,
        email_key = coalesce($3, before.email_key),
        name = nullif(new.name, ''),
        role = new.role,
        permissions = new.permissions,
        is_active = new.is_active,
        storage_quota = new.storage_quota,
        file_quota = new.file_quota,
        password_hash = new.password_hash,
        identity_issuer = CASE WHEN $2 ? 'password_hash' THEN NULL ELSE before.identity_issuer END,
        identity_subject = CASE WHEN $2 ? 'password_hash' THEN NULL ELSE before.identity_subject END,
        credentials_version = before.credentials_version
                              + ($2 ? 'password_hash' OR new.email <> before.email)::integer,
        sessions_ended_at = CASE
            WHEN $2 ? 'password_hash' OR new.role <> before.role OR new.is_active <> before.is_active THEN now()
            ELSE before.sessions_ended_at
        END,
        updated_at = now()
    FROM before, jsonb_populate_record(before::users, $2) new
    WHERE users.id = before.id
    RETURNING users.*
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT change.action::audit_action, $8, 'user', c.id, $9, $10, change.details
    FROM changed c
    JOIN before b ON b.id = c.id
    CROSS JOIN changed_columns(to_jsonb(b), to_jsonb(c), ARRAY['username', 'name', 'role', 'permissions', 'is_active',
                                                               'storage_quota', 'file_quota']) names
    CROSS JOIN LATERAL (VALUES
        ('email.change', c.email <> b.email, '{}'::jsonb),
        ('password.change', $2 ? 'password_hash', '{}'),
        ('user.update', names <> '{}', jsonb_build_object(
            'fields', names,
            'old', jsonb_build_object('role', b.role, 'is_active', b.is_active),
            'new', jsonb_build_object('role', c.role, 'is_active', c.is_active)
        ))
    ) change (action, has_happened, details)
    WHERE change.has_happened
)
SELECT a.*, CASE WHEN sessions_ended_at = now() THEN end_sessions(a.id) END
FROM changed, account(changed) a
