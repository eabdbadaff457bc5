-- The file with id $1, whoever owns it.
SELECT id, user_id, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public
FROM files
WHERE id = $1
