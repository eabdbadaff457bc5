-- What authenticate.sql says about one request, for several of them in one round trip: one that is alone need not pay
-- for the arrays. $1: users; $2: the tokens' sessions; $3: when those without one were issued; $4: the maximum age of
-- a session. The arrays have the same length; `position` counts from 1 in them. An account that cannot be used has no
-- row. The arrays are hidden from the planner in subqueries: if it saw their lengths, plans for short ones would look
-- cheaper than the generic plan, and it would plan anew for each request. `LIMIT 1` keeps it from hashing whole tables.
SELECT t.position, u.*
FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[]), (SELECT $3::bigint[]))
     WITH ORDINALITY AS t (user_id, session_id, issued_at, position)
CROSS JOIN LATERAL (
    SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
           u.last_login, u.total_uploads, u.total_storage_used, u.credentials_version,
           coalesce((SELECT s.expires_at > now() AND s.created_at + make_interval(secs => $4) > now()
                     FROM sessions s
                     WHERE s.id = t.session_id AND s.user_id = u.id AND s.ended_at IS NULL
                     LIMIT 1), false)
           OR t.session_id = '00000000-0000-0000-0000-000000000000'
               AND (u.sessions_ended_at IS NULL
                    OR coalesce(t.issued_at > floor(extract(epoch FROM u.sessions_ended_at)), false)) AS session_is_live
    FROM users u
    WHERE u.id = t.user_id AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
    LIMIT 1
) u
