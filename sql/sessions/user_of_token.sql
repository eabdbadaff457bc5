-- The user of a token that has no session, or whose session find_live.sql has not found. $1: user; $2: when the token
-- was issued, Unix time in seconds, null if it does not say. An account that cannot be used has no row.
-- A token without a session is valid if it was issued after all sessions of the user were last ended. The times are
-- compared in whole seconds, and a token of the same second is refused.
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
       u.last_login, u.total_uploads, u.total_storage_used, u.storage_quota, u.file_quota,
       u.second_factor_at IS NOT NULL AS second_factor,
       u.credentials_version,
       u.sessions_ended_at IS NULL
       OR coalesce($2::bigint > floor(extract(epoch FROM u.sessions_ended_at)), false) AS is_valid_without_session
FROM users u
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
