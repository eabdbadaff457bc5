-- Up to $1 files of one deleted user, to be removed. One row without a file means that this user has none left;
-- no row means that there is no such user, or that a backup is running, which needs the contents: see
-- backup/pause_removals.
-- The order is that of the index files_newest, so that the query reads that many of its entries, not the whole table.
SELECT pending.user_id, f.id AS file_id
FROM (
    SELECT user_id FROM pending_removals
    -- As a subquery it is asked once, and not for each row.
    WHERE (SELECT pg_try_advisory_xact_lock_shared(hashtext('cloakroom: removal of contents')))
    ORDER BY user_id LIMIT 1
) pending
LEFT JOIN LATERAL (
    SELECT id FROM files WHERE user_id = pending.user_id ORDER BY upload_date DESC, id LIMIT $1
) f ON true
