-- The files that are asked for, after file $7 with name $6 in folder $5, at most $8, in the order of their folders,
-- their names without regard to case, and ids. With link $1 they are those that the link is to, while it is live and
-- its owner is active; without one, which is null, those of user $2: files $3, or else what lies in folder $4 or below
-- it. Folders are as from the one that is asked for; files that are asked for one by one have none. A link to a folder
-- shows nothing that a stranger sent and its owner has left as it came. A row without an id means that there are no
-- more, and no row that there is no such link or user.
-- The planner does not see the values, so it keeps its plan.
WITH wanted AS MATERIALIZED (
    SELECT user_id, files, folder FROM file_links l JOIN users owner ON owner.id = user_id
    WHERE l.id = $1::uuid AND l.expires_at > now() AND owner.is_active AND NOT owner.is_deleted
    UNION ALL
    SELECT id, $3::uuid[], $4::text FROM users WHERE $1 IS NULL AND id = $2::uuid AND NOT is_deleted
), named AS NOT MATERIALIZED (
    SELECT '' AS place, f.* FROM files f
    WHERE id = ANY ((SELECT files FROM wanted)::uuid[]) AND user_id = (SELECT user_id FROM wanted)
      AND ('', folded(filename), id) > ((SELECT $5::text), folded((SELECT $6::text)), (SELECT $7::uuid))
), contained AS NOT MATERIALIZED (
    SELECT substr(folder, (SELECT length(folder) + 1 FROM wanted)) AS place, f.* FROM files f
    WHERE user_id = (SELECT user_id FROM wanted)
      AND folder >= (SELECT folder FROM wanted) AND folder < after_folder((SELECT folder FROM wanted))
      AND ($1 IS NULL OR NOT is_as_received)
      AND (folder, folded(filename), id)
          > ((SELECT folder || $5 FROM wanted), folded((SELECT $6)), (SELECT $7))
    ORDER BY folder, folded(filename), id LIMIT (SELECT $8::bigint)
), page AS NOT MATERIALIZED (
    SELECT * FROM (SELECT * FROM named UNION ALL SELECT * FROM contained) found
    ORDER BY place COLLATE "C", folded(filename), id LIMIT (SELECT $8)
)
SELECT id, place, filename, content_type, file_size, file_hash, crc32, upload_date, updated_at, version
FROM wanted LEFT JOIN page ON true
ORDER BY place COLLATE "C", folded(filename), id
