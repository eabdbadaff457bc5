-- The live sessions of user $1, newest first, at most $4. $2: the session of the request, or null; $3: the maximum age
-- of a session in seconds. No row means that there is no such user; a row without an id, that no session is live.
SELECT s.id, s.created_at, s.rotated_at[1] AS last_refreshed_at,
       LEAST(s.expires_at, s.created_at + make_interval(secs => $3)) AS expires_at, s.address, s.user_agent,
       coalesce(s.id = $2, false) AS is_current
FROM users u LEFT JOIN sessions s
    ON s.user_id = u.id AND s.ended_at IS NULL AND s.expires_at > now()
       AND s.created_at + make_interval(secs => $3) > now()
WHERE u.id = $1 AND NOT u.is_deleted AND NOT u.is_development_admin
ORDER BY s.created_at DESC, s.id
LIMIT $4
