-- Changes account $1 as an administrator asks. $2: username; $3: e-mail address; $4: display name; $5: role; $6:
-- permissions; $7: whether it is active; $8: password hash; null leaves a column as it is.
-- Another role, password or value of is_active ends the sessions, because their tokens carry the old role. The trigger
-- users_last_admin refuses to take away the last active admin.
WITH changed AS (
    UPDATE users
    SET username = coalesce($2, username),
        email = coalesce($3, email),
        name = coalesce($4, name),
        role = coalesce($5, role),
        permissions = coalesce($6, permissions),
        is_active = coalesce($7, is_active),
        password_hash = coalesce($8, password_hash),
        credentials_version = credentials_version + ($8 IS NOT NULL OR coalesce($3, email) <> email)::integer,
        sessions_ended_at = CASE
            WHEN $8 IS NOT NULL OR coalesce($5, role) <> role OR coalesce($7, is_active) <> is_active THEN now()
            ELSE sessions_ended_at
        END,
        updated_at = now()
    WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    RETURNING *
)
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, CASE WHEN sessions_ended_at = now() THEN end_sessions(id) END
FROM changed
