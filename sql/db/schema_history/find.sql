-- The migrations that were applied, the oldest first. `oldest_program` is the oldest version of the schema whose
-- programs may use the database after this one; null if none but those that know it.
SELECT version, name, oldest_program FROM refinery_schema_history ORDER BY version
