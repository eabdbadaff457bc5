-- The newest migration after which a program that knows versions up to $1 may not use the database; no row if there is
-- none. Read in a way in which the column may be missing, as in `find.sql`.
SELECT version
FROM refinery_schema_history AS history
WHERE version > $1 AND coalesce((to_jsonb(history) ->> 'oldest_program')::int, version) > $1
ORDER BY version DESC
LIMIT 1
