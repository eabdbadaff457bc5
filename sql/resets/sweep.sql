-- Removes up to $1 records each of used password reset tokens, and of tries of tokens that confirm an address, that
-- have expired since; returns how many it removed. Several processes may run this at once: SKIP LOCKED gives each of
-- them other rows.
WITH removed AS (
    DELETE FROM used_password_reset_tokens
    WHERE id = ANY (ARRAY(
        SELECT id FROM used_password_reset_tokens WHERE expires_at < now() ORDER BY expires_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
), tries AS (
    DELETE FROM email_confirmation_tries
    WHERE token_id = ANY (ARRAY(
        SELECT token_id FROM email_confirmation_tries WHERE expires_at < now() LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING token_id
)
SELECT (SELECT count(*) FROM removed) + (SELECT count(*) FROM tries) AS removed
