-- Takes the lock under which one backup at a time runs; false if another one holds it. It belongs to the session, so
-- the server releases it when the process ends, however it ends.
SELECT pg_try_advisory_lock(hashtext('cloakroom: backup')) AS is_locked
