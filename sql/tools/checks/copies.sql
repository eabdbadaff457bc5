-- The tables that triggers keep from others and that differ from what they are made of, with the number of rows that
-- are wrong or missing. In the snapshot of one statement they agree. For totals, a row is the sum of a day, or of one
-- of the months whose days db/stats/fold.sql may have added up; the shards are one sum, null if there are none.
WITH accounts AS (
    SELECT day_of_totals(day), role, is_active, sum(accounts) FROM account_totals
    GROUP BY 1, 2, 3 HAVING sum(accounts) <> 0
), counted_accounts AS (
    SELECT day_of_totals((created_at AT TIME ZONE 'UTC')::date), role, is_active, count(*) FROM listable_users
    GROUP BY 1, 2, 3
), file_sums AS (
    SELECT day_of_totals(day), sum(files), sum(bytes) FROM file_totals
    GROUP BY 1 HAVING sum(files) <> 0 OR sum(bytes) <> 0
), counted_files AS (
    SELECT day_of_totals((upload_date AT TIME ZONE 'UTC')::date), count(*), sum(file_size) FROM files GROUP BY 1
), counted_folders AS (
    SELECT user_id, folder, count(*) FROM files GROUP BY user_id, folder
), faults AS (
    SELECT 'listed_users' AS copy, count(*) AS faults
    FROM ((TABLE listed_users EXCEPT TABLE listable_users) UNION ALL (TABLE listable_users EXCEPT TABLE listed_users)) u
    UNION ALL
    SELECT 'storage_shards', 1
    WHERE (SELECT (sum(used), sum(disk_usage)) FROM storage_shards)
          IS DISTINCT FROM
          (SELECT (coalesce(sum(used), 0), coalesce(sum(disk_usage), 0))
           FROM (SELECT used, disk_usage FROM stored_contents UNION ALL
                 SELECT used, disk_usage FROM partial_uploads) stored)
    UNION ALL
    SELECT 'account_totals', count(*)
    FROM ((TABLE accounts EXCEPT TABLE counted_accounts) UNION ALL (TABLE counted_accounts EXCEPT TABLE accounts)) a
    UNION ALL
    SELECT 'users (deleted files)', count(*)
    FROM users u LEFT JOIN (
        SELECT user_id, count(*) AS files, sum(file_size) AS bytes FROM deleted_files GROUP BY user_id
    ) d ON d.user_id = u.id
    WHERE (u.deleted_files, u.deleted_bytes) <> (coalesce(d.files, 0), coalesce(d.bytes, 0))
    UNION ALL
    SELECT 'users (disk usage)', count(*)
    FROM users u LEFT JOIN (
        SELECT user_id, sum(disk_usage) AS bytes FROM stored_contents GROUP BY user_id
    ) s ON s.user_id = u.id
    WHERE u.disk_usage <> coalesce(s.bytes, 0)
    UNION ALL
    SELECT 'file_totals', count(*)
    FROM ((TABLE file_sums EXCEPT TABLE counted_files) UNION ALL (TABLE counted_files EXCEPT TABLE file_sums)) f
    UNION ALL
    SELECT 'folder_totals', count(*)
    FROM ((TABLE folder_totals EXCEPT TABLE counted_folders)
          UNION ALL (TABLE counted_folders EXCEPT TABLE folder_totals)) f
)
SELECT copy, faults FROM faults WHERE faults > 0
