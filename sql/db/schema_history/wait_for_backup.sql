-- As try_without_backup, but waits until the backup that is running has ended.
SELECT pg_advisory_xact_lock_shared(hashtext('cloakroom: backup'))
