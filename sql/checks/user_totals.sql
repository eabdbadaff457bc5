-- The totals of the next thousand accounts after id $1, in the order of ids: those that are kept in the row, and those
-- of the records of files. Deleted accounts are included, because theirs must agree until the last file is removed.
-- Uploads and deletions change both in one transaction, so in the snapshot of one statement they agree.
SELECT u.id, COALESCE(u.username, u.id::text) AS name, u.is_deleted, u.total_uploads, u.total_storage_used,
       counted.files, counted.bytes
FROM (SELECT id, username, is_deleted, total_uploads, total_storage_used
      FROM users WHERE id > $1 ORDER BY id LIMIT 1000) u
CROSS JOIN LATERAL (
    SELECT count(*) AS files, coalesce(sum(file_size), 0)::bigint AS bytes FROM files WHERE user_id = u.id
) counted
ORDER BY u.id
