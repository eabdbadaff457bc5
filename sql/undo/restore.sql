-- Restores deleted files of user $1: file $2 or, if that is null, those that were deleted at $3 or later. $4, $5: the
-- quotas of bytes and of files of a user without quotas of their own; $6: quota of bytes of the whole service; $7, $8:
-- address and request id of the event. Returns how many it restored, and how many of those that it was asked for remain
-- deleted. No row means that there is no such user. It restores at most as many files as have 8 MiB of
-- descriptions together: the rows are written anew while the user's row is locked.
-- In a queue of many uploads, this waits long for the same locks as they do, so only the statement timeout limits that.
WITH no_lock_timeout AS (
    SELECT set_config('lock_timeout', '0', true)
), owner AS MATERIALIZED (
    SELECT id, coalesce(storage_quota, $4) AS most_bytes, coalesce(file_quota, $5) AS most_files
    FROM users, no_lock_timeout WHERE id = $1 AND is_active AND NOT is_deleted FOR NO KEY UPDATE OF users
), light AS MATERIALIZED (
    SELECT greatest(count(*) FILTER (WHERE bytes <= 8 * 1024 * 1024), 1) AS files
    FROM (SELECT sum(coalesce(octet_length(description), 0)) OVER (ORDER BY deleted_at DESC, id) AS bytes
          FROM (SELECT id, deleted_at, description FROM deleted_files
                WHERE user_id = (SELECT id FROM owner) AND deleted_at >= $3
                ORDER BY deleted_at DESC, id LIMIT 10000) latest) counted
), outcome AS MATERIALIZED (
    SELECT restored, remaining
    FROM owner, light,
         restore_files(id, $2, $3, most_bytes, most_files, $6, light.files)
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.restore', $1, CASE WHEN $2::uuid IS NULL THEN 'user' ELSE 'file' END, coalesce($2, $1), $7, $8,
           CASE WHEN $2 IS NULL THEN jsonb_build_object('count', restored) ELSE '{}' END
    FROM outcome WHERE restored > 0
)
SELECT restored, remaining FROM outcome
