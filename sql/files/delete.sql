-- Removes the record of file $1 if user $2 owns it. $3, $4: address and request id of the event; $5 to $7: as $8 to $10
-- of update.sql. Returns its owner, whether the user has it, whether it was removed, and whether its content may be
-- removed too; no row means that there is no such file, or that its owner is deleted.
-- The content stays while a backup holds this lock, see backup/pause_removals, and longer in a store; a row tells the
-- sweep why. The lock is kept until the transaction is committed, so a backup takes its snapshot either after that, and
-- does not name the file, or keeps the content. The owner's row is locked before anything is deleted, as uploads lock
-- it before anything else. So no two of them can deadlock.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 AND NOT is_deleted FOR NO KEY UPDATE
), file AS (
    SELECT files.id, version, updated_at FROM files JOIN owner ON owner.id = user_id WHERE files.id = $1
    FOR UPDATE OF files
), removed AS (
    DELETE FROM files USING file
    WHERE files.id = file.id
      AND ($5::integer[] IS NULL OR file.version = ANY ($5)) AND file.version <> ALL ($6::integer[])
      AND ($7::timestamptz IS NULL OR date_trunc('second', file.updated_at) <= $7)
    RETURNING files.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'file.delete', $2, 'file', id, $3, $4 FROM removed
), noted AS (
    INSERT INTO deleted_contents (id) SELECT id FROM removed
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
), backup AS MATERIALIZED (
    SELECT NOT pg_try_advisory_xact_lock_shared(hashtext('cloakroom: removal of contents')) AS is_running
)
SELECT before.user_id AS owner_id, EXISTS (SELECT FROM file) AS is_own, removed.id IS NOT NULL AS is_removed,
       NOT backup.is_running AS may_remove_content
FROM files before JOIN users owner_row ON owner_row.id = before.user_id AND NOT owner_row.is_deleted
CROSS JOIN backup
LEFT JOIN removed ON true
WHERE before.id = $1
