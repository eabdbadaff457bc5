-- Forgets up to $1 deletions of files that were more than $2 days ago, at least one, and notes for each user up to
-- which number deletions are forgotten. Returns how many. Those of a user whose row is locked wait for another time.
WITH old AS MATERIALIZED (
    SELECT file_id, user_id FROM file_deletions WHERE deleted_at < now() - make_interval(days => greatest($2, 1))
    ORDER BY deleted_at LIMIT (SELECT $1::bigint)
), owner AS MATERIALIZED (
    SELECT id FROM users WHERE id IN (SELECT user_id FROM old) FOR NO KEY UPDATE SKIP LOCKED
), forgotten AS (
    DELETE FROM file_deletions
    WHERE file_id = ANY (ARRAY(SELECT old.file_id FROM old JOIN owner ON owner.id = old.user_id))
    RETURNING user_id, change_number
), noted AS (
    UPDATE users
    SET remembered_deletions = remembered_deletions - f.deletions,
        forgotten_change = greatest(forgotten_change, f.latest)
    FROM (SELECT user_id, count(*) AS deletions, max(change_number) AS latest FROM forgotten GROUP BY user_id) f
    WHERE users.id = f.user_id
)
SELECT count(*) AS removed FROM forgotten
