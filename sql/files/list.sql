-- A page of the files of user $1 that match, in any order, and how many match in all. $2: part of the filename or
-- description, null for any; $3: the spellings of a content type, null for any; $4: the column to sort by, filenames
-- without regard to case; $5: whether descending; $6: files of a page; $7: files before it; $8: the folder in which
-- they lie, null for any; $9: the one in or below which they lie, null for any; $10: whether strangers sent them by
-- links, null for any. A page past the end is one row with the total alone.
-- The triggers on files keep the totals of all files of a user and of those in a folder, and the index files_type
-- counts those of a type. If few are of the type, all of them are sorted. If many are, an index in the order leads to
-- the page after a few others. A search, also one below a folder or for what strangers sent, reads all files of the
-- user, or below the folder, however few match, and sorts what it finds: 100,000 files with descriptions of 4 KiB take
-- five seconds of one core, nearly all of them in folded(). So the program runs one search of a user at a time. The
-- text to search for is in a common table expression, which parallel workers cannot read. So they may read the table,
-- but a single process searches. The query is planned each time for its parameters: all branches but one have a limit
-- of 0, so they are not run.
WITH searched AS MATERIALIZED (
    SELECT folded($2::text) AS part
), owner AS MATERIALIZED (
    SELECT total_uploads FROM users WHERE id = $1 AND NOT is_deleted
), typed AS MATERIALIZED (
    SELECT count(*) AS files FROM files
    WHERE coalesce($2, $9::text, $10::boolean::text) IS NULL AND $3::text[] IS NOT NULL
      AND user_id = $1 AND content_type = ANY ($3)
      AND ($8::text IS NULL OR folder = $8)
      AND EXISTS (SELECT FROM owner)
), few AS MATERIALIZED (
    SELECT id, filename, file_size, upload_date FROM files CROSS JOIN searched
    WHERE user_id = $1
      AND ($3 IS NULL OR content_type = ANY ($3))
      AND ($2 IS NULL OR strpos(folded(filename), part) > 0 OR strpos(folded(description), part) > 0)
      AND ($8 IS NULL OR folder = $8)
      AND ($9 IS NULL OR folder >= $9 AND folder < after_folder($9))
      AND ($10 IS NULL OR (received_by IS NOT NULL) = $10)
      AND EXISTS (SELECT FROM owner)
      AND (coalesce($2, $9, $10::text) IS NOT NULL OR (SELECT files BETWEEN 1 AND 1000 FROM typed))
), counted AS MATERIALIZED (
    SELECT CASE WHEN coalesce($2, $9, $10::text) IS NOT NULL THEN (SELECT count(*) FROM few)
                WHEN $3 IS NOT NULL THEN (SELECT files FROM typed)
                WHEN $8 IS NOT NULL
                THEN coalesce((SELECT files FROM folder_totals JOIN owner ON user_id = $1 AND folder = $8), 0)
                ELSE coalesce((SELECT total_uploads FROM owner), 0) END AS total
), walk AS (
    SELECT CASE WHEN coalesce($2, $9, $10::text) IS NOT NULL OR total <= $7::bigint THEN 0
                WHEN $3 IS NULL OR total > 1000 THEN $6::bigint
                ELSE 0 END AS files
    FROM counted
), matching AS NOT MATERIALIZED (
    SELECT id, folded(filename) AS filename, file_size, upload_date FROM files
    WHERE user_id = $1 AND ($3 IS NULL OR content_type = ANY ($3)) AND ($8 IS NULL OR folder = $8)
), page AS (
    SELECT id, place
    FROM unnest(
        ARRAY(SELECT id FROM matching ORDER BY upload_date, id OFFSET $7
              LIMIT CASE WHEN $4::text = 'upload_date' AND NOT $5::boolean THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM matching ORDER BY upload_date DESC, id OFFSET $7
                 LIMIT CASE WHEN $4 = 'upload_date' AND $5 THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM matching ORDER BY filename, id OFFSET $7
                 LIMIT CASE WHEN $4 = 'filename' AND NOT $5 THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM matching ORDER BY filename DESC, id OFFSET $7
                 LIMIT CASE WHEN $4 = 'filename' AND $5 THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM matching ORDER BY file_size, id OFFSET $7
                 LIMIT CASE WHEN $4 = 'file_size' AND NOT $5 THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM matching ORDER BY file_size DESC, id OFFSET $7
                 LIMIT CASE WHEN $4 = 'file_size' AND $5 THEN (SELECT files FROM walk) ELSE 0 END)
        || ARRAY(SELECT id FROM few
                 ORDER BY CASE WHEN $4 = 'filename' AND NOT $5 THEN folded(filename) END,
                          CASE WHEN $4 = 'filename' AND $5 THEN folded(filename) END DESC,
                          CASE WHEN $4 = 'file_size' THEN CASE WHEN $5 THEN -file_size ELSE file_size END END,
                          CASE WHEN $4 = 'upload_date' AND NOT $5 THEN upload_date END,
                          CASE WHEN $4 = 'upload_date' AND $5 THEN upload_date END DESC,
                          id
                 LIMIT $6 OFFSET $7)
    ) WITH ORDINALITY AS page (id, place)
)
SELECT f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public, f.version, f.received_by, counted.total
FROM counted
LEFT JOIN (page JOIN files f ON f.id = page.id) ON true
ORDER BY page.place
