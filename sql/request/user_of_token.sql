-- The user of a token that has no session, or whose session find_live.sql has not found. $1: user; $2: when the token
-- was issued, Unix time in seconds, null if it does not say. An account that cannot be used has no row.
-- A token without a session is valid if it was issued after all sessions of the user were last ended. The times are
-- compared in whole seconds, and a token of the same second is refused.
SELECT a.*, u.sessions_ended_at IS NULL
            OR coalesce($2::bigint > floor(extract(epoch FROM u.sessions_ended_at)), false) AS is_valid_without_session
FROM users u, account(u) a
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
