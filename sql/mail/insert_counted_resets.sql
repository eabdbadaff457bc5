-- Writes events for the requests that came within two minutes of an event about their account, once these are over: for
-- up to $1 accounts, each with the number of its requests, and begins two minutes anew. Forgets accounts without such a
-- request. Returns how many accounts there were. Several processes may run this at once: SKIP LOCKED gives each of them
-- other rows.
WITH due AS MATERIALIZED (
    SELECT user_id, requests FROM password_reset_counts
    WHERE event_at <= now() - interval '2 minutes'
    ORDER BY user_id LIMIT $1
    FOR UPDATE SKIP LOCKED
), event AS (
    INSERT INTO audit_events (action, subject_type, subject_id, details)
    SELECT 'password.reset_request', 'user', user_id, jsonb_build_object('count', requests)
    FROM due WHERE requests > 0
), begun AS (
    UPDATE password_reset_counts c SET event_at = now(), requests = 0
    FROM due WHERE c.user_id = due.user_id AND due.requests > 0
), forgotten AS (
    DELETE FROM password_reset_counts c USING due WHERE c.user_id = due.user_id AND due.requests = 0
)
SELECT count(*) AS accounts FROM due
