-- Writes events for changes that have none of their own, see `schema.sql` beside this file, once their hour is over:
-- up to $1, the oldest first, each with the number of a user's changes of one action in one hour; returns how
-- many. Several processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH due AS MATERIALIZED (
    SELECT hour, user_id, action FROM skipped_changes
    WHERE hour < date_trunc('hour', now(), 'UTC')
    ORDER BY hour, user_id, action LIMIT $1
    FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM skipped_changes s USING due
    WHERE (s.hour, s.user_id, s.action) = (due.hour, due.user_id, due.action)
    RETURNING s.*
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, details)
    SELECT action, CASE WHEN NOT by_link THEN user_id END, CASE WHEN by_link THEN 'link' ELSE 'user' END, user_id,
           jsonb_strip_nulls(jsonb_build_object(
               'count', changes, 'hour', to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'link_id', CASE WHEN by_link THEN user_id END
           ))
    FROM taken, LATERAL (SELECT action = 'file.receive' AS by_link) sent
)
SELECT count(*) AS events FROM taken
