-- How many of the files are there that are asked for, as in archive/list.sql, their bytes, how many were looked at, and
-- the time of the look. $1: link; $2: user; $3: files; $4: folder; $5: how many are looked at, 10,001 at least. Of more
-- than 10,000 number and bytes are null. Strangers may have sent any number of those that are looked at and that a link
-- does not show. No row means that there is no such link or user.
WITH wanted AS MATERIALIZED (
    SELECT user_id, files, folder FROM file_links l JOIN users owner ON owner.id = user_id
    WHERE l.id = $1::uuid AND l.expires_at > now() AND owner.is_active AND NOT owner.is_deleted
    UNION ALL
    SELECT id, $3::uuid[], $4::text FROM users WHERE $1 IS NULL AND id = $2::uuid AND NOT is_deleted
), found AS MATERIALIZED (
    SELECT file_size, false AS is_hidden FROM files
    WHERE id = ANY ((SELECT files FROM wanted)::uuid[]) AND user_id = (SELECT user_id FROM wanted)
    UNION ALL
    (SELECT file_size, $1 IS NOT NULL AND is_as_received FROM files
     WHERE user_id = (SELECT user_id FROM wanted)
       AND folder >= (SELECT folder FROM wanted) AND folder < after_folder((SELECT folder FROM wanted))
     LIMIT (SELECT $5::bigint))
), total AS (
    SELECT count(*) AS seen, count(*) FILTER (WHERE NOT is_hidden) AS files,
           coalesce(sum(file_size) FILTER (WHERE NOT is_hidden), 0)::bigint AS bytes
    FROM found
)
SELECT CASE WHEN total.files <= 10000 THEN total.files END AS files,
       CASE WHEN total.files <= 10000 THEN bytes END AS bytes, seen, clock_timestamp() AS at
FROM wanted, total
