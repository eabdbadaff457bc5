-- Records a file where it fits into the quotas of its owner ($8) and of the service ($9). The locks,
-- always the owner's row first, put parallel uploads in a line, and each compares with what the one
-- before it left; the triggers on files add to both totals. No row: there is no such user. A row
-- without an id: it does not fit.
WITH owner AS (
    SELECT id, total_storage_used FROM users WHERE id = $2 AND is_active AND NOT is_deleted FOR NO KEY UPDATE
), service AS (
    SELECT FROM storage, owner WHERE owner.total_storage_used + $5 <= $8 AND storage.used + $5 <= $9
    FOR UPDATE OF storage
), file AS (
    INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description)
    SELECT $1, owner.id, $3, $3, $4, $5, 'files/' || $1::uuid, $6, $7 FROM owner, service
    RETURNING *
)
SELECT file.id, user_id, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public
FROM owner LEFT JOIN file ON true
