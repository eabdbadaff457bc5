-- Totals for administrators. Each number is read from the smallest index that has it; each user's row has the totals of
-- the user's files. Deleted users do not count, nor do their files whose records are still to be removed.
WITH month AS (
    SELECT date_trunc('month', now(), 'UTC') AS began
)
SELECT u.total AS users,
       u.total - (SELECT count(*) FROM users
                  WHERE NOT is_active AND NOT is_deleted AND NOT is_development_admin) AS active_users,
       (SELECT count(*) FROM users, month
        WHERE created_at >= began AND NOT is_deleted AND NOT is_development_admin) AS new_users,
       f.total AS files, f.size AS bytes,
       (SELECT count(*) FROM files, month WHERE upload_date >= began)
       - (SELECT count(*) FROM pending_removals JOIN files USING (user_id), month
          WHERE upload_date >= began) AS new_files
FROM (SELECT count(*) AS total FROM users WHERE NOT is_deleted AND NOT is_development_admin) u,
     (SELECT coalesce(sum(total_uploads), 0)::bigint AS total,
             coalesce(sum(total_storage_used), 0)::bigint AS size
      FROM users WHERE NOT is_deleted) f
