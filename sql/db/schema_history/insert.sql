-- Records that the migration with version $1 and name $2 was applied, and in $3 the oldest version of the schema whose
-- programs may go on beside it.
INSERT INTO refinery_schema_history (version, name, applied_on, oldest_program)
VALUES ($1, $2, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), $3)
