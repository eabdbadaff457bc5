-- The identifier that a primary and its standbys share, and the timeline that the server writes to; null in a standby.
-- It is that of the server's present WAL file, because pg_control names a new one only after the next checkpoint.
SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
       CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
