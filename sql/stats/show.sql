-- Each number from the smallest index that has it. What a user stores is kept with the user.
WITH month AS (
    SELECT date_trunc('month', now(), 'UTC') AS began
)
SELECT u.total,
       u.total - (SELECT count(*) FROM users
                  WHERE NOT is_active AND NOT is_deleted AND password_hash IS NOT NULL) AS active,
       (SELECT count(*) FROM users, month
        WHERE created_at >= began AND NOT is_deleted AND password_hash IS NOT NULL) AS new_this_month,
       f.total, f.size,
       (SELECT count(*) FROM files, month WHERE upload_date >= began) AS uploads_this_month
FROM (SELECT count(*) AS total FROM users WHERE NOT is_deleted AND password_hash IS NOT NULL) u,
     (SELECT coalesce(sum(total_uploads), 0)::bigint AS total,
             coalesce(sum(total_storage_used), 0)::bigint AS size
      FROM users) f
