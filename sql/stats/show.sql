-- Totals for administrators. Each number is read from the smallest index that has it; what a user stores is summed up
-- in the user's row. Files of deleted accounts are gone, so no condition is needed there.
WITH month AS (
    SELECT date_trunc('month', now(), 'UTC') AS began
)
SELECT u.total AS users,
       u.total - (SELECT count(*) FROM users
                  WHERE NOT is_active AND NOT is_deleted AND password_hash IS NOT NULL) AS active_users,
       (SELECT count(*) FROM users, month
        WHERE created_at >= began AND NOT is_deleted AND password_hash IS NOT NULL) AS new_users,
       f.total AS files, f.size AS bytes,
       (SELECT count(*) FROM files, month WHERE upload_date >= began) AS new_files
FROM (SELECT count(*) AS total FROM users WHERE NOT is_deleted AND password_hash IS NOT NULL) u,
     (SELECT coalesce(sum(total_uploads), 0)::bigint AS total,
             coalesce(sum(total_storage_used), 0)::bigint AS size
      FROM users) f
