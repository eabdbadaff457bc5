-- A page of the deleted files of user $1 that match, and how many match in all. The parameters are those of list.sql,
-- with deleted_at as another column to sort by. A page past the end is one row with the total alone. All deleted files
-- of the user are read and sorted; they are bounded as those that are not deleted are.
WITH matching AS MATERIALIZED (
    SELECT id, folded(filename) AS filename, file_size, upload_date, deleted_at FROM deleted_files
    WHERE user_id = (SELECT id FROM users WHERE id = $1 AND NOT is_deleted)
      AND ($3::text[] IS NULL OR content_type = ANY ($3))
      AND ($8::text IS NULL OR folder = $8)
      AND ($9::text IS NULL OR folder >= $9 AND folder < after_folder($9))
      AND ($10::boolean IS NULL OR (received_by IS NOT NULL) = $10)
      AND ($2::text IS NULL OR strpos(folded(filename), folded($2)) > 0 OR strpos(folded(description), folded($2)) > 0)
), page AS (
    SELECT id, row_number() OVER () AS place FROM (
        SELECT id FROM matching
        ORDER BY CASE WHEN $4::text = 'filename' AND NOT $5::boolean THEN filename END,
                 CASE WHEN $4 = 'filename' AND $5 THEN filename END DESC,
                 CASE WHEN $4 = 'file_size' THEN CASE WHEN $5 THEN -file_size ELSE file_size END END,
                 CASE WHEN $4 = 'upload_date' AND NOT $5 THEN upload_date END,
                 CASE WHEN $4 = 'upload_date' AND $5 THEN upload_date END DESC,
                 CASE WHEN $4 = 'deleted_at' AND NOT $5 THEN deleted_at END,
                 CASE WHEN $4 = 'deleted_at' AND $5 THEN deleted_at END DESC,
                 id
        LIMIT $6 OFFSET $7
    ) sorted
)
SELECT f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public, f.version, f.received_by, f.deleted_at,
       (SELECT count(*) FROM matching) AS total
FROM (VALUES (1)) one
LEFT JOIN (page JOIN deleted_files f ON f.id = page.id) ON true
ORDER BY page.place
