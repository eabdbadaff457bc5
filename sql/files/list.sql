-- A page of those of a user's files that match, in any order, and their number. $2: part of the filename
-- or description; $3: content type; $4: column; $5: whether descending; $6, $7: size of the page and how
-- many files lie before it.
WITH matching AS MATERIALIZED (
    SELECT id,
           row_number() OVER (ORDER BY
               CASE WHEN $4 = 'filename' AND NOT $5 THEN filename END,
               CASE WHEN $4 = 'filename' AND $5 THEN filename END DESC,
               CASE WHEN $4 = 'file_size' THEN CASE WHEN $5 THEN -file_size ELSE file_size END END,
               CASE WHEN $4 = 'upload_date' AND NOT $5 THEN upload_date END,
               CASE WHEN $4 = 'upload_date' AND $5 THEN upload_date END DESC,
               id) AS place
    FROM files
    WHERE user_id = $1
      AND ($2::text IS NULL OR strpos(lower(filename), lower($2)) > 0 OR strpos(lower(description), lower($2)) > 0)
      AND ($3::text IS NULL OR content_type = $3)
)
SELECT f.id, f.user_id, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash, f.description,
       f.upload_date, f.updated_at, f.is_public, t.total
FROM (SELECT count(*) AS total FROM matching) t
LEFT JOIN (matching m JOIN files f ON f.id = m.id) ON m.place - $7::bigint BETWEEN 1 AND $6::bigint
ORDER BY m.place
