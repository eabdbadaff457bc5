-- Deletes files of user $1 in folder $2 or below it. $3, $4: address and request id of the event; $5 to $7: as of
-- files/delete_many.sql. Returns how many it deleted, and how many remain. No row: there is no such user.
WITH owner AS MATERIALIZED (
    SELECT id, greatest(storage_quota, $6) AS most_bytes, greatest(file_quota, $7) AS most_files
    FROM users WHERE id = $1 AND NOT is_deleted FOR NO KEY UPDATE
), outcome AS MATERIALIZED (
    SELECT deleted, remaining FROM owner, delete_folder(owner.id, $2, $5, most_bytes, most_files, $7)
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'folder.delete', $1, 'user', $1, $3, $4, jsonb_build_object('folder', folder_path($2), 'count', deleted)
    FROM outcome WHERE deleted > 0
)
SELECT deleted, remaining FROM outcome
