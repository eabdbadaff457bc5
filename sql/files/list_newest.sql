-- A page of a user's files, newest first, by the index; their number is known from the user's row.
SELECT f.id, f.user_id, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash, f.description,
       f.upload_date, f.updated_at, f.is_public, u.total_uploads
FROM users u
LEFT JOIN LATERAL (
    SELECT * FROM files WHERE user_id = u.id ORDER BY upload_date DESC, id LIMIT $2 OFFSET $3
) f ON true
WHERE u.id = $1
ORDER BY f.upload_date DESC, f.id
