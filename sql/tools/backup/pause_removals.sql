-- Keeps contents where they are until the session ends, so that those that a backup names can be copied:
--
-- - db/removals/contents, the only query that names contents which are to be removed, names none while this lock is
--   held. What it named before has no record in the snapshot of the backup, which is taken afterwards.
-- - The sweep asks db/backup_is_running after it has looked up which contents have no record, and before it moves them.
--   If no backup was running, those have no record in the snapshot of a later one either.
--
-- Neither waits: those who find the lock taken leave the contents to a later time.
SELECT pg_advisory_lock(hashtext('cloakroom: removal of contents'))
