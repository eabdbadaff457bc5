-- The command create-admin: creates an administrator with id $1, username $2, e-mail address $3 and password hash $4.
-- $5: key of the address. If an account has that address already, it becomes an active administrator: it keeps its
-- username, gets the password, and its sessions and its identity end.
WITH admin AS (
    INSERT INTO users (id, username, email, email_key, password_hash, role, is_settled)
    VALUES ($1, $2, $3, $5, $4, 'admin', true)
    ON CONFLICT (email_key) WHERE NOT is_deleted AND NOT is_development_admin DO UPDATE
    SET password_hash = excluded.password_hash,
        identity_issuer = NULL,
        identity_subject = NULL,
        role = 'admin',
        is_active = true,
        is_settled = true,
        is_self_registered = false,
        credentials_version = users.credentials_version + 1,
        sessions_ended_at = now(),
        updated_at = now()
    RETURNING id, username, id = $1 AS is_new, second_factor_at IS NOT NULL AS second_factor
), event AS (
    INSERT INTO audit_events (action, subject_type, subject_id, details)
    SELECT 'admin.create', 'user', id, jsonb_build_object('is_new', is_new) FROM admin
)
SELECT id, username, is_new, second_factor, end_sessions(id) FROM admin
