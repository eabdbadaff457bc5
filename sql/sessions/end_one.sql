-- Ends session $2 of user $1. Where $2 is null, the request's token has no session: such tokens cannot be told apart,
-- so all of them end.
WITH ended AS (UPDATE sessions SET ended_at = now() WHERE id = $2 AND user_id = $1 AND ended_at IS NULL)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND (SELECT $2::uuid) IS NULL
