-- A page of the files of user $1, newest first: the default list. $2: files of a page; $3: files before it. Each row
-- also has the total; a page past the end has no row.
-- The index files_newest gives the page, and the triggers on files keep the total in the user's row, so the cost does
-- not grow with the number of files. The planner does not see the values of $2 and $3, so it keeps its plan.
SELECT id, user_id, folder, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public, version, received_by,
       (SELECT total_uploads FROM users WHERE id = $1) AS total
FROM files
WHERE user_id = (SELECT id FROM users WHERE id = $1 AND NOT is_deleted)
ORDER BY upload_date DESC, id
LIMIT (SELECT $2::bigint) OFFSET (SELECT $3::bigint)
