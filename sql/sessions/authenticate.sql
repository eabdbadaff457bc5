-- The user of a request and the state of the token's session, in one look. $2: the token's session;
-- $3: when a token without one was issued.
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
       u.last_login, u.total_uploads, u.total_storage_used,
       CASE
           WHEN $2::uuid IS NOT NULL THEN
               EXISTS (SELECT FROM sessions s
                       WHERE s.id = $2 AND s.user_id = u.id AND s.ended_at IS NULL AND s.expires_at > now())
           ELSE u.sessions_ended_at IS NULL
               OR coalesce($3::bigint > floor(extract(epoch FROM u.sessions_ended_at)), false)
       END AS session_is_live
FROM users u
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND u.password_hash IS NOT NULL
