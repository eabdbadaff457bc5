-- Up to $2 contents that are to be removed: those that were listed more than $1 days ago, the longest ago first. No row
-- also while a backup is running, which may need them: see tools/backup/pause_removals; and none on a standby, which
-- does not see the lock of a backup. A content whose record has come back, as by hand, is none.
SELECT deleted.id
FROM deleted_contents deleted
-- As a subquery it is asked once, and not for each row.
WHERE (SELECT pg_try_advisory_xact_lock_shared(hashtext('cloakroom: removal of contents')))
  AND NOT pg_is_in_recovery()
  AND deleted.deleted_at < now() - make_interval(days => $1)
  AND NOT EXISTS (SELECT FROM recorded_contents r WHERE r.id = deleted.id)
ORDER BY deleted.deleted_at
LIMIT $2
