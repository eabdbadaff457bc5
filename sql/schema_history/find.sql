-- The migrations that were applied, the oldest first. `oldest_program` is the oldest version of the schema whose
-- programs may use the database after this one; null if none but those that know it. Read in a way in which the column
-- may be missing, because the database may be one of an earlier version of this program.
SELECT version, name, checksum, (to_jsonb(history) ->> 'oldest_program')::int AS oldest_program
FROM refinery_schema_history AS history
ORDER BY version
