-- The command create-admin: creates an administrator with id $1, username $2, e-mail address $3 and password hash $4.
-- $5: ASCII form of the address, if it differs. If an account has that address already, it becomes an active
-- administrator: it keeps its username, gets the password, and its sessions end. The account is found as
-- users/find_by_login does: one that is stored under the address as given goes before one of the same ASCII form.
WITH admin AS (
    INSERT INTO users (id, username, email, email_ascii, password_hash, role, is_settled)
    SELECT $1, $2, $3, CASE WHEN NOT EXISTS (
        SELECT FROM users
        WHERE lower(coalesce(email_ascii, email)) = lower($3) AND NOT is_deleted AND NOT is_development_admin
    ) THEN $5 END, $4, 'admin', true
    ON CONFLICT (lower(coalesce(email_ascii, email))) WHERE NOT is_deleted AND NOT is_development_admin DO UPDATE
    SET password_hash = excluded.password_hash,
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
