-- The accounts whose totals are wrong, the first 10,000 in the order of ids: the totals that are kept in the row, and
-- those of the records of files. Deleted accounts are included, because theirs must agree until the last file is
-- removed. Uploads and deletions change both in one transaction, so in the snapshot of one statement they agree.
-- The records are added up in one pass over the table: a look for each account would read all of a large one each time.
SELECT COALESCE(u.username, u.id::text) AS name, u.total_uploads, u.total_storage_used,
       COALESCE(counted.files, 0) AS files, COALESCE(counted.bytes, 0) AS bytes
FROM users u
LEFT JOIN (
    SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM files GROUP BY user_id
) counted ON counted.user_id = u.id
WHERE (u.total_uploads, u.total_storage_used) <> (COALESCE(counted.files, 0), COALESCE(counted.bytes, 0))
ORDER BY u.id LIMIT 10000
