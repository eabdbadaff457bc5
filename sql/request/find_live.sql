-- The users of live sessions, of one request or of several that came together. $1: ids of sessions; $2: the maximum age
-- of a session in seconds; $3: for how many seconds one that has expired still counts. A session that is not live, or
-- whose account cannot be used, has no row.
-- The array is hidden from the planner in a subquery: if it saw the length, plans for short ones would look cheaper
-- than the generic plan, and it would plan anew for each request.
SELECT s.id AS session_id, a.*
FROM sessions s
JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
CROSS JOIN account(u) a
WHERE s.id = ANY ((SELECT $1::uuid[])::uuid[]) AND s.ended_at IS NULL
  AND s.expires_at + make_interval(secs => $3) > now() AND s.created_at + make_interval(secs => $2) > now()
  AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
