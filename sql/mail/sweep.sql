-- Removes up to $1 messages that were given up thirty days ago, and up to $1 rows each of
-- password_reset_messages and mail_counts that are too old to limit another message; returns how many rows it removed.
WITH failed AS (
    DELETE FROM outbox
    WHERE id = ANY (ARRAY(
        SELECT id FROM outbox WHERE failed_at < now() - interval '30 days' ORDER BY failed_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
), forgotten AS (
    DELETE FROM password_reset_messages
    WHERE user_id = ANY (ARRAY(
        SELECT user_id FROM password_reset_messages WHERE sent_at[1] < now() - interval '1 day' LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING user_id
), uncounted AS (
    DELETE FROM mail_counts
    WHERE key = ANY (ARRAY(
        SELECT key FROM mail_counts WHERE queued_at[1] < now() - interval '1 day' LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING key
)
SELECT (SELECT count(*) FROM failed) + (SELECT count(*) FROM forgotten) + (SELECT count(*) FROM uncounted) AS removed
