-- Ends all sessions of user $1 but $2. Tokens without a session end too, unless the request's token is itself one of
-- them ($2 is null): such tokens cannot be told apart.
WITH ended AS (
    UPDATE sessions SET ended_at = now()
    WHERE user_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2::uuid
)
UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND $2 IS NOT NULL
