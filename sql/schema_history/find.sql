-- The migrations that were applied, the oldest first.
SELECT version, name, checksum FROM refinery_schema_history ORDER BY version
