-- Whether a backup is running, or about to begin, and needs all contents that have a record in its snapshot.
SELECT NOT pg_try_advisory_xact_lock_shared(hashtext('cloakroom: removal of contents')) AS is_running
