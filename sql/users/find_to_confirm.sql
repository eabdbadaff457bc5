-- The accounts that ask for address $2, in its ASCII form and in lower case: the eight newest wishes, and account $5,
-- for which the token was made; the newest first. $1, $4: id of the token, and when it expires; $3: a username, null
-- for any. Counts a try of the token. No row may mean that it had ten.
WITH tried AS (
    INSERT INTO email_confirmation_tries AS earlier (token_id, tries, expires_at) VALUES ($1, 1, $4)
    ON CONFLICT (token_id) DO UPDATE SET tries = earlier.tries + 1 WHERE earlier.tries < 10
    RETURNING token_id
), asking AS (
    SELECT id, password_hash, credentials_version, confirmation_ends_at FROM users
    WHERE email_to_confirm = $2 AND confirmation_ends_at > now() AND is_active
      AND ($3::text IS NULL OR lower(username) = lower($3))
)
SELECT id, password_hash, credentials_version
FROM tried, (
    (SELECT * FROM asking ORDER BY confirmation_ends_at DESC, id LIMIT 8)
    UNION
    SELECT * FROM asking WHERE id = $5
) found
ORDER BY confirmation_ends_at DESC, id
