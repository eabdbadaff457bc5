-- Exports the snapshot of this transaction under an id, by which pg_dump gets the same; with what the manifest says
-- about the database, and its size on disk in bytes. The id of the installation is null if the service was never
-- started.
SELECT pg_export_snapshot() AS snapshot_id, (SELECT id FROM installation) AS installation_id,
       (SELECT max(version) FROM refinery_schema_history) AS schema_version,
       pg_database_size(current_database()) AS database_size
