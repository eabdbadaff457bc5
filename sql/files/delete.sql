-- Deletes file $1 if user $2 owns it. $3, $4: address and request id of the event; $5 to $7: as $8 to $10 of
-- update.sql; $8: whether the user may restore it; $9, $10: the most bytes and the most files of theirs that may be
-- restored, or their own quotas if they are larger; of $10 deletions at most are remembered; $11: whether it goes for
-- good also if it was deleted before. Returns its owner, whether the user has it, and whether it was deleted; no row
-- means that there is no such file, or that its owner is deleted. A file that the user has and that was not deleted has
-- not the version or time; one of theirs that they do not have was deleted or restored while this waited.
-- The owner's row is locked before anything is deleted, as uploads lock it before anything else. So no two of them can
-- deadlock.
WITH owner AS (
    SELECT id, greatest(storage_quota, $9) AS most_bytes, greatest(file_quota, $10) AS most_files
    FROM users WHERE id = $2 AND NOT is_deleted FOR NO KEY UPDATE
), file AS (
    SELECT files.id, version, updated_at, most_bytes, most_files
    FROM files JOIN owner ON owner.id = user_id WHERE files.id = $1 FOR UPDATE OF files
), removed AS (
    DELETE FROM files USING file
    WHERE files.id = file.id
      AND ($5::integer[] IS NULL OR file.version = ANY ($5)) AND file.version <> ALL ($6::integer[])
      AND ($7::timestamptz IS NULL OR date_trunc('second', file.updated_at) <= $7)
    RETURNING files.*, upload_date > now() - interval '1 day' AS is_young, most_bytes, most_files,
              forget_deletions(user_id, $10)
), deleted_before AS (
    SELECT deleted_files.id, version, deleted_files.updated_at
    FROM deleted_files JOIN owner ON owner.id = user_id WHERE $11 AND deleted_files.id = $1 FOR UPDATE OF deleted_files
), restorable AS (
    INSERT INTO deleted_files (id, user_id, folder, filename, original_filename, content_type, file_size, file_hash,
                               description, upload_date, updated_at, is_public, version, was_young, is_utf8, crc32,
                               received_by, is_as_received)
    SELECT id, user_id, folder, filename, original_filename, content_type, file_size, file_hash, description,
           upload_date, updated_at, is_public, version, is_young, is_utf8, crc32, received_by, is_as_received
    FROM removed
    WHERE CASE WHEN $8 THEN make_room_for_deleted_file(user_id, file_size, is_young, most_bytes, most_files, 10)
               ELSE false END
    RETURNING id
), purged AS (
    DELETE FROM deleted_files USING deleted_before file
    WHERE deleted_files.id = file.id AND ($5 IS NULL OR file.version = ANY ($5)) AND file.version <> ALL ($6)
      AND ($7 IS NULL OR date_trunc('second', file.updated_at) <= $7)
    RETURNING deleted_files.id, user_id, file_size
), gone AS (
    SELECT id, user_id, file_size FROM removed WHERE id NOT IN (SELECT id FROM restorable) UNION TABLE purged
), listed AS (
    INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
    SELECT id, '-infinity', user_id, file_size FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT (CASE WHEN $11 THEN 'file.purge' ELSE 'file.delete' END)::audit_action, $2, 'file', id, $3, $4
    FROM (SELECT id FROM removed UNION SELECT id FROM purged) deleted
)
SELECT before.user_id AS owner_id, EXISTS (SELECT FROM file UNION ALL SELECT FROM deleted_before) AS is_own,
       removed.id IS NOT NULL AS is_deleted
FROM (SELECT user_id FROM files WHERE id = $1
      UNION ALL SELECT user_id FROM deleted_files WHERE $11 AND id = $1 AND user_id = $2) before
JOIN users owner_row ON owner_row.id = before.user_id AND NOT owner_row.is_deleted
LEFT JOIN (SELECT id FROM removed UNION SELECT id FROM purged) removed ON true
