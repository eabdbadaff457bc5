-- Changes what is given of a file of user $2. No row: no such file. A row without an id: it is
-- somebody else's.
WITH file AS (
    UPDATE files
    SET filename = coalesce($3, filename),
        description = coalesce($4, description),
        is_public = coalesce($5, is_public),
        updated_at = now()
    WHERE id = $1 AND user_id = $2
    RETURNING *
)
SELECT file.id, file.user_id, file.filename, file.original_filename, file.content_type, file.file_size,
       file.file_hash, file.description, file.upload_date, file.updated_at, file.is_public, before.user_id
FROM files before LEFT JOIN file ON file.id = before.id
WHERE before.id = $1
