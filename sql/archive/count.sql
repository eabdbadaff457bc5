-- How many of the files are there that are asked for, as in archive/list.sql, their bytes, and the time of the look. $1:
-- link; $2: user; $3: files; $4: folder. Of more than 10,000 number and bytes are null, so none of them makes this
-- longer. No row means that there is no such link or user.
WITH wanted AS MATERIALIZED (
    SELECT user_id, files, folder FROM file_links l JOIN users owner ON owner.id = user_id
    WHERE l.id = $1::uuid AND l.expires_at > now() AND owner.is_active AND NOT owner.is_deleted
    UNION ALL
    SELECT id, $3::uuid[], $4::text FROM users WHERE $1 IS NULL AND id = $2::uuid AND NOT is_deleted
), found AS MATERIALIZED (
    SELECT file_size FROM files
    WHERE id = ANY ((SELECT files FROM wanted)::uuid[]) AND user_id = (SELECT user_id FROM wanted)
    UNION ALL
    (SELECT file_size FROM files
     WHERE user_id = (SELECT user_id FROM wanted)
       AND folder >= (SELECT folder FROM wanted) AND folder < after_folder((SELECT folder FROM wanted))
     LIMIT 10001)
), total AS (
    SELECT count(*) AS files, coalesce(sum(file_size), 0)::bigint AS bytes FROM found
)
SELECT CASE WHEN total.files <= 10000 THEN total.files END AS files,
       CASE WHEN total.files <= 10000 THEN bytes END AS bytes, clock_timestamp() AS at
FROM wanted, total
