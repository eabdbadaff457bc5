-- Removes up to $1 accounts whose address was not confirmed in time, and drops pending addresses that were not. Returns
-- how many. Several processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH ended AS MATERIALIZED (
    SELECT id FROM users
    WHERE email_confirmed = ANY (ARRAY[true, false]) AND confirmation_ends_at <= now()
    LIMIT (SELECT $1::bigint)
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM users USING ended WHERE users.id = ended.id AND NOT email_confirmed
), dropped AS (
    UPDATE users SET pending_email = NULL, email_to_confirm = NULL, confirmation_ends_at = NULL
    FROM ended WHERE users.id = ended.id AND email_confirmed
)
SELECT count(*) AS removed FROM ended
