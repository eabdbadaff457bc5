-- The live sessions of user $1, newest first, at most $4. $2: the session of the request, or null; $3: the maximum age
-- of a session in seconds. No row means that there is no such user; a row without an id, that no session is live.
-- The subquery reads the sessions in the order of their index, and no more than $4.
SELECT s.id, s.created_at, s.rotated_at[1] AS last_refreshed_at,
       LEAST(s.expires_at, s.created_at + make_interval(secs => $3)) AS expires_at, s.address, s.user_agent,
       coalesce(s.id = $2, false) AS is_current
FROM users u LEFT JOIN LATERAL (
    SELECT * FROM sessions
    WHERE user_id = u.id AND epoch = u.session_epoch AND ended_at IS NULL AND expires_at > now()
      AND created_at + make_interval(secs => $3) > now()
    ORDER BY created_at DESC, id
    LIMIT $4
) s ON true
WHERE u.id = $1 AND NOT u.is_deleted AND NOT u.is_development_admin
ORDER BY s.created_at DESC, s.id
