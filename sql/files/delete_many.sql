-- Deletes those of the files $2 that user $1 has, in this order. $3, $4: address and request id of the events; $5:
-- whether the user may restore them; $6, $7: as $9 and $10 of files/delete.sql. Returns the ids of those that are
-- deleted, in their order.
WITH owner AS MATERIALIZED (
    SELECT id, greatest(storage_quota, $6) AS most_bytes, greatest(file_quota, $7) AS most_files
    FROM users WHERE id = $1 AND NOT is_deleted FOR NO KEY UPDATE
), deleted AS MATERIALIZED (
    SELECT file_id FROM owner, delete_files(owner.id, $2, $5, most_bytes, most_files, $7) file_id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'file.delete', $1, 'file', file_id, $3, $4 FROM deleted
)
SELECT file_id FROM deleted
