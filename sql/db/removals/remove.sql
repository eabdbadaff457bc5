-- Removes what a deleted user has left, up to $1 records: those of files, of deleted files, and of deletions. The
-- contents are listed to be removed at once. Returns how many records there were; 0 if no deleted user has any. Of
-- several processes that run this, one gets each record.
-- The order is that of the index files_newest, so that the query reads that many of its entries, not the whole table.
-- The user's row is locked first, as in uploads and deletions: with the same order everywhere, no two of them deadlock.
WITH owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = (SELECT user_id FROM pending_removals ORDER BY user_id LIMIT 1) FOR NO KEY UPDATE
), present AS (
    DELETE FROM files WHERE id = ANY (ARRAY(
        SELECT id FROM files WHERE user_id = (SELECT id FROM owner)
        ORDER BY upload_date DESC, id LIMIT (SELECT $1::bigint)
    ))
    RETURNING id, user_id, file_size
), deleted AS (
    DELETE FROM deleted_files WHERE id = ANY (ARRAY(
        SELECT id FROM deleted_files WHERE user_id = (SELECT id FROM owner)
        LIMIT (SELECT $1 - count(*) FROM present)
    ))
    RETURNING id, user_id, file_size
), forgotten AS (
    DELETE FROM file_deletions WHERE file_id = ANY (ARRAY(
        SELECT file_id FROM file_deletions WHERE user_id = (SELECT id FROM owner)
        LIMIT (SELECT $1 - count(*) FROM (TABLE present UNION ALL TABLE deleted) removed)
    ))
    RETURNING file_id
), listed AS (
    INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
    SELECT id, '-infinity', user_id, file_size FROM (TABLE present UNION TABLE deleted) gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
), finished AS (
    DELETE FROM pending_removals USING owner
    WHERE user_id = owner.id
      AND NOT EXISTS (SELECT FROM files f WHERE f.user_id = owner.id)
      AND NOT EXISTS (SELECT FROM deleted_files f WHERE f.user_id = owner.id)
      AND NOT EXISTS (SELECT FROM file_deletions f WHERE f.user_id = owner.id)
    RETURNING user_id
)
SELECT (SELECT count(*) FROM present) + (SELECT count(*) FROM deleted) + (SELECT count(*) FROM forgotten)
       + (SELECT count(*) FROM finished) AS removed
