-- The users of several requests, and whether the sessions of their tokens are live, in one round trip. $1: users; $2:
-- the tokens' sessions, null for a token without one; $3: when the tokens without one were issued, Unix time in
-- seconds; $4: the maximum age of a session in seconds. The arrays have the same length; `position` counts from 1 in
-- them. There is no row for an account that cannot be used.
-- A token without a session is valid if it was issued after all sessions of the user were last ended. The times are
-- compared in whole seconds, and a token of the same second is refused.
-- The arrays are hidden from the planner in subqueries: if it saw their lengths, plans for short ones would look cheaper
-- than the generic plan, and it would plan anew for each request. `LIMIT 1` keeps it from hashing whole tables.
SELECT t.position, u.*
FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[]), (SELECT $3::bigint[]))
     WITH ORDINALITY AS t (user_id, session_id, issued_at, position)
CROSS JOIN LATERAL (
    SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
           u.last_login, u.total_uploads, u.total_storage_used, u.credentials_version,
           CASE WHEN t.session_id IS NULL
                THEN u.sessions_ended_at IS NULL
                     OR coalesce(t.issued_at > floor(extract(epoch FROM u.sessions_ended_at)), false)
                ELSE coalesce((SELECT s.expires_at > now() AND s.created_at + make_interval(secs => $4) > now()
                               FROM sessions s
                               WHERE s.id = t.session_id AND s.user_id = u.id AND s.ended_at IS NULL
                               LIMIT 1), false)
           END AS session_is_live
    FROM users u
    WHERE u.id = t.user_id AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
    LIMIT 1
) u
