-- Ends session $2 of user $1. $3: the greatest age of a session in seconds. No row means that the user has no such
-- session, or that it has ended already.
UPDATE sessions SET ended_at = now()
WHERE id = $2 AND user_id = $1 AND ended_at IS NULL AND expires_at > now()
  AND created_at + make_interval(secs => $3) > now()
RETURNING id
