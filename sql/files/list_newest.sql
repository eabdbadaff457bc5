-- A page of the files of user $1, newest first: the default list. $2: files of a page; $3: files before it. A page
-- past the end is one row with the total alone.
-- The index files_newest gives the page, and the triggers on files keep the total in the user's row, so the cost does
-- not grow with the number of files. The planner does not see the values of $2 and $3, so it keeps its plan.
SELECT f.id, f.user_id, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash, f.description,
       f.upload_date, f.updated_at, f.is_public, u.total_uploads AS total
FROM users u
LEFT JOIN LATERAL (
    SELECT * FROM files WHERE user_id = u.id ORDER BY upload_date DESC, id
    LIMIT (SELECT $2::bigint) OFFSET (SELECT $3::bigint)
) f ON true
WHERE u.id = $1 AND NOT u.is_deleted
ORDER BY f.upload_date DESC, f.id
