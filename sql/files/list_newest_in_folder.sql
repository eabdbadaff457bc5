-- As list_newest.sql, of the files in folder $4.
SELECT id, user_id, folder, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public, version, received_by,
       (SELECT files FROM folder_totals WHERE user_id = $1 AND folder = $4) AS total
FROM files
WHERE user_id = (SELECT id FROM users WHERE id = $1 AND NOT is_deleted)
  AND folder = (SELECT $4)
ORDER BY upload_date DESC, id
LIMIT (SELECT $2::bigint) OFFSET (SELECT $3::bigint)
