-- A page of the files of user $1 that match, in any order, and how many match in all. $2: part of the filename or
-- description, null for any; $3: the spellings of a content type, null for any; $4: the column to sort by, filenames
-- without regard to case; $5: whether descending; $6: files of a page; $7: files before it. A page past the end is one
-- row with the total alone.
-- The query reads all files of the user: 100,000 files with descriptions of 4 KiB take five seconds of one core, nearly
-- all of them in lower(). So the program runs one search of a user at a time. The text to search for is in a common
-- table expression, which parallel workers cannot read. So they may read the table, but a single process searches. The
-- query is planned each time for its parameters.
WITH searched AS MATERIALIZED (
    SELECT lower($2::text) AS part
), matching AS MATERIALIZED (
    SELECT id,
           row_number() OVER (ORDER BY
               CASE WHEN $4 = 'filename' AND NOT $5 THEN lower(filename) END,
               CASE WHEN $4 = 'filename' AND $5 THEN lower(filename) END DESC,
               CASE WHEN $4 = 'file_size' THEN CASE WHEN $5 THEN -file_size ELSE file_size END END,
               CASE WHEN $4 = 'upload_date' AND NOT $5 THEN upload_date END,
               CASE WHEN $4 = 'upload_date' AND $5 THEN upload_date END DESC,
               id) AS place
    FROM files CROSS JOIN searched
    WHERE user_id = $1
      AND (part IS NULL OR strpos(lower(filename), part) > 0 OR strpos(lower(description), part) > 0)
      AND ($3::text[] IS NULL OR content_type = ANY ($3))
      AND EXISTS (SELECT FROM users WHERE id = $1 AND NOT is_deleted)
)
SELECT f.id, f.user_id, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash, f.description,
       f.upload_date, f.updated_at, f.is_public, t.total
FROM (SELECT count(*) AS total FROM matching) t
LEFT JOIN (matching m JOIN files f ON f.id = m.id) ON m.place - $7::bigint BETWEEN 1 AND $6::bigint
ORDER BY m.place
