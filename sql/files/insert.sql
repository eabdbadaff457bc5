-- Records a file if it fits into all quotas. $1: id; $2: owner; $3: filename; $4: content type; $5: size in bytes; $6:
-- hash; $7: description; $8, $9: the quotas of bytes and of files of an owner without quotas of its own; $10: quota of
-- bytes of the whole service; $11, $12: address and request id of the event; $13: quota of bytes of young accounts that
-- registered themselves; $14, $15: the idempotency key and the hash of the request, or null; $16: whether all of the
-- content is UTF-8 without NUL. No row means that there is no such user; a row without an id means that the file does
-- not fit, that its key was used within a day, or that the user has too many keys.
-- The lock of the owner's row makes parallel uploads of one user wait for each other. Each then sees the totals that
-- the one before it left, to which the triggers on files add, so the quotas are exact. Uploads of several users wait
-- for each other only near the quota of the service. The owner's row is always locked first; otherwise two uploads
-- could deadlock.
-- In a queue of many uploads, the last ones wait long for these locks although nothing is wrong, so only the statement
-- timeout limits that. A locked table, other than storage_shards, is met before anything here runs, and still ends the
-- statement.
WITH patience AS (
    SELECT set_config('lock_timeout', '0', true)
), owner AS (
    SELECT id, total_uploads, total_storage_used, storage_quota, file_quota,
           is_self_registered AND created_at > now() - interval '7 days' AS is_young
    FROM users, patience WHERE id = $2 AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE OF users
), fitting AS MATERIALIZED (
    SELECT id FROM owner
    WHERE total_storage_used + $5 <= coalesce(storage_quota, $8) AND total_uploads < coalesce(file_quota, $9)
      AND has_storage_for($5, $10)
      AND (NOT is_young OR young_disk_usage(disk_usage($5, $7), $13) + disk_usage($5, $7) <= $13)
      AND ($14::text IS NULL OR count_idempotency_keys(id) < 10000)
), key AS (
    INSERT INTO idempotency_keys AS known (user_id, key, file_id, request_hash, file_size)
    SELECT id, $14, $1, $15, $5 FROM fitting WHERE $14 IS NOT NULL
    ON CONFLICT (user_id, key) DO UPDATE
    SET file_id = excluded.file_id, request_hash = excluded.request_hash, file_size = excluded.file_size,
        created_at = excluded.created_at
    WHERE known.created_at <= now() - interval '1 day'
    RETURNING file_id
), file AS (
    INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description, is_utf8)
    SELECT $1, id, $3, $3, $4, $5, 'files/' || $1::uuid, $6, $7, $16 FROM fitting
    WHERE $14 IS NULL OR EXISTS (SELECT FROM key)
    RETURNING *
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.upload', user_id, 'file', id, $11, $12, jsonb_build_object('file_size', file_size) FROM file
)
SELECT file.id, user_id, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public, version
FROM owner LEFT JOIN file ON true
