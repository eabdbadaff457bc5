-- The newest migration after which a program that knows versions up to $1 may not use the database; no row if there is
-- none.
SELECT version FROM refinery_schema_history
WHERE version > $1 AND coalesce(oldest_program, version) > $1
ORDER BY version DESC
LIMIT 1
