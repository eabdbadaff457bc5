-- Gives up to $1 deleted files up for good that were deleted more than $2 days ago; their contents are listed to be
-- removed at once. Returns how many. Those of a user whose row is locked wait for another time.
WITH old AS MATERIALIZED (
    SELECT id, user_id FROM deleted_files WHERE deleted_at < now() - make_interval(days => $2)
    ORDER BY deleted_at LIMIT (SELECT $1::bigint)
), owner AS MATERIALIZED (
    SELECT id FROM users WHERE id IN (SELECT user_id FROM old) FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM deleted_files WHERE id = ANY (ARRAY(SELECT old.id FROM old JOIN owner ON owner.id = old.user_id))
    RETURNING id, user_id, file_size
), listed AS (
    INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
    SELECT id, '-infinity', user_id, file_size FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
)
SELECT count(*) AS removed FROM gone
