-- The folders directly in folder $2 of user $1, in the order of their names, which come after the name $3, and at most
-- $4. Each row leads to the next, past all that lies in it, so the cost grows with their number alone.
WITH RECURSIVE child AS (
    SELECT 0 AS place, ($2::text || split_part($3::text, chr(1), 1) || chr(1)) COLLATE "C" AS folder
    UNION ALL
    SELECT place + 1,
           (SELECT $2 || split_part(substr(next.folder, length($2) + 1), chr(1), 1) || chr(1)
            FROM folder_totals next
            WHERE user_id = (SELECT id FROM users WHERE id = $1 AND NOT is_deleted)
              AND next.folder >= after_folder(child.folder) AND next.folder < after_folder($2)
            ORDER BY next.folder LIMIT 1)
    FROM child WHERE folder IS NOT NULL AND place < $4::bigint
)
SELECT folder FROM child WHERE place > 0 AND folder IS NOT NULL ORDER BY place
