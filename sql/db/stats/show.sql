-- Totals for administrators, from the rows of sums that triggers keep. Deleted users do not count, nor do their files
-- whose records are still to be removed, which each user's row has the number and the bytes of.
WITH this AS (
    SELECT date_trunc('month', now(), 'UTC') AS began, date_trunc('month', now() AT TIME ZONE 'UTC')::date AS month
)
SELECT a.*, (SELECT coalesce(sum(deleted_bytes), 0)::bigint FROM users WHERE deleted_bytes > 0) AS deleted_bytes,
       f.files - removed.files AS files, f.bytes - removed.bytes AS bytes,
       f.new_files - (SELECT count(*) FROM pending_removals JOIN files USING (user_id), this
                      WHERE upload_date >= began) AS new_files
FROM (SELECT coalesce(sum(accounts), 0)::bigint AS users,
             coalesce(sum(accounts) FILTER (WHERE is_active), 0)::bigint AS active_users,
             coalesce(sum(accounts) FILTER (WHERE day >= month), 0)::bigint AS new_users
      FROM account_totals, this) a,
     (SELECT coalesce(sum(files), 0)::bigint AS files, coalesce(sum(bytes), 0)::bigint AS bytes,
             coalesce(sum(files) FILTER (WHERE day >= month), 0)::bigint AS new_files
      FROM file_totals, this) f,
     (SELECT coalesce(sum(total_uploads), 0)::bigint AS files, coalesce(sum(total_storage_used), 0)::bigint AS bytes
      FROM pending_removals JOIN users ON users.id = user_id) removed
