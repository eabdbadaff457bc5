-- The accounts whose totals are wrong, or above the quota of $1 bytes or $2 files, the first $3 in the order of ids:
-- the totals that are kept in the row, and those of the records of files. Deleted accounts are included, because theirs
-- must agree until the last file is removed. Uploads and deletions change both in one transaction, so in the snapshot
-- of one statement they agree.
-- The records are added up in one pass over the table: a look for each account would read all of a large one each time.
SELECT COALESCE(u.username, u.id::text) AS name, u.is_deleted, u.total_uploads, u.total_storage_used,
       COALESCE(counted.files, 0) AS files, COALESCE(counted.bytes, 0) AS bytes
FROM users u
LEFT JOIN (
    SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM files GROUP BY user_id
) counted ON counted.user_id = u.id
WHERE (u.total_uploads, u.total_storage_used) <> (COALESCE(counted.files, 0), COALESCE(counted.bytes, 0))
   OR NOT u.is_deleted AND (counted.bytes > $1 OR counted.files > $2)
ORDER BY u.id LIMIT $3
