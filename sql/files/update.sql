-- Changes file $1 if user $2 owns it. $3: filename; $4: description; $5: whether it is public; null leaves a column
-- as it is. No row means that there is no such file, or that its owner is deleted; a row without an id means that it
-- is not the user's.
WITH file AS (
    UPDATE files
    SET filename = coalesce($3, filename),
        description = coalesce($4, description),
        is_public = coalesce($5, is_public),
        updated_at = now()
    WHERE id = $1 AND user_id = $2 AND EXISTS (SELECT FROM users WHERE id = $2 AND NOT is_deleted)
    RETURNING *
)
SELECT file.id, file.user_id, file.filename, file.original_filename, file.content_type, file.file_size,
       file.file_hash, file.description, file.upload_date, file.updated_at, file.is_public, before.user_id AS owner_id
FROM files before JOIN users owner ON owner.id = before.user_id AND NOT owner.is_deleted
LEFT JOIN file ON file.id = before.id
WHERE before.id = $1
