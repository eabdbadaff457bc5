-- Records those of several files that certainly fit into all quotas, each by the rules of insert.sql, in one commit.
-- What the triggers and the commit cost is shared by all of them. $1 to $9, with an element for each file: ids; owners;
-- filenames; content types; sizes in bytes; hashes; descriptions; addresses and request ids of the events. $10, $11:
-- the quotas of bytes and of files of an owner without quotas of its own; $12: quota of bytes of the whole service;
-- $13: quota of bytes of young accounts that registered themselves. $14, $15: idempotency keys and hashes of the
-- requests, null for those without; $16: whether all of a content is UTF-8 without NUL. A row for each recorded file.
-- Nobody's file waits for another user's lock: an owner is passed over if its row is locked, or that of own_changes,
-- which the event of an upload changes, or if there is none yet. Nor is a file recorded here that would not fit after
-- those of the same owner before it. The files before it and it must together be small in the sense of has_storage_for,
-- and if they do not fit into the service's quota, none is recorded. If those of young accounts do not fit into theirs,
-- none of these is. One whose key is known is not recorded. The caller decides about the others one by one. Keys are
-- counted by the owner's column, not by the upload's, so that this comes after the lock of the owner's row.
WITH patience AS (
    SELECT set_config('lock_timeout', '0', true)
), upload AS (
    SELECT *, (sum(file_size) OVER so_far)::bigint AS bytes, row_number() OVER so_far AS files,
           (sum(file_size) OVER (ORDER BY number))::bigint AS bytes_of_all
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::inet[],
                $9::uuid[], $14::text[], $15::bytea[], $16::boolean[]) WITH ORDINALITY
         AS upload (id, user_id, filename, content_type, file_size, file_hash, description, address, request_id, key,
                    request_hash, is_utf8, number)
    WINDOW so_far AS (PARTITION BY user_id ORDER BY number)
), owner AS (
    SELECT id, total_uploads, total_storage_used, storage_quota, file_quota,
           is_self_registered AND created_at > now() - interval '7 days' AS is_young
    FROM users JOIN own_changes ON user_id = id, patience
    WHERE id = ANY ($2) AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE OF users, own_changes SKIP LOCKED
), fitting AS MATERIALIZED (
    SELECT upload.*, is_young FROM upload JOIN owner ON owner.id = user_id
    WHERE total_storage_used + bytes <= coalesce(storage_quota, $10)
      AND total_uploads + files <= coalesce(file_quota, $11)
      AND bytes_of_all <= $12::bigint / 8 / current_setting('max_connections')::bigint
      AND (key IS NULL OR count_idempotency_keys(owner.id) + files <= 10000)
), room AS MATERIALIZED (
    SELECT has_storage_for((SELECT coalesce(sum(file_size), 0)::bigint FROM fitting), $12) AS is_left
), room_of_young AS MATERIALIZED (
    SELECT young_disk_usage(more, $13) + more <= $13 AS is_left
    FROM (SELECT sum(disk_usage(file_size, description))::bigint AS more FROM fitting WHERE is_young) young
), admitted AS MATERIALIZED (
    SELECT fitting.* FROM fitting, room, room_of_young
    WHERE room.is_left AND (NOT is_young OR room_of_young.is_left)
), keyed AS (
    INSERT INTO idempotency_keys (user_id, key, file_id, request_hash, file_size)
    SELECT user_id, key, id, request_hash, file_size FROM admitted WHERE key IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING file_id
), file AS (
    INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description, is_utf8)
    SELECT id, user_id, filename, filename, content_type, file_size, 'files/' || id, file_hash, description, is_utf8
    FROM admitted WHERE key IS NULL OR id IN (SELECT file_id FROM keyed)
    RETURNING *
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.upload', user_id, 'file', id, address, request_id, jsonb_build_object('file_size', file.file_size)
    FROM file JOIN upload USING (id, user_id)
)
SELECT id, user_id, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public, version
FROM file
