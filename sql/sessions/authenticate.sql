-- The user of a request, and whether its token's session is live, in one round trip. $1: user; $2: the token's
-- session, the nil UUID, which no session has, for a token without one; $3: when a token without one was issued, Unix
-- time in seconds; $4: the maximum age of a session in seconds.
-- A token without a session is valid if it was issued after all sessions of the user were last ended. The times are
-- compared in whole seconds, and a token of the same second is refused. A null in place of the nil UUID would let the
-- planner drop the look-up of the session, and then it would plan the query anew for each request.
-- authenticate_all.sql has the same rules, for several requests.
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
       u.last_login, u.total_uploads, u.total_storage_used, u.credentials_version,
       EXISTS (SELECT FROM sessions s
               WHERE s.id = $2 AND s.user_id = u.id AND s.ended_at IS NULL AND s.expires_at > now()
                 AND s.created_at + make_interval(secs => $4) > now())
       OR $2 = '00000000-0000-0000-0000-000000000000'
           AND (u.sessions_ended_at IS NULL
                OR coalesce($3::bigint > floor(extract(epoch FROM u.sessions_ended_at)), false)) AS session_is_live
FROM users u
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
