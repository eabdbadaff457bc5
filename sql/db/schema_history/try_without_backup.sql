-- Keeps backups from beginning until the transaction ends; false if one is running.
SELECT pg_try_advisory_xact_lock_shared(hashtext('cloakroom: backup')) AS is_locked
