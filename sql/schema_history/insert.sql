-- Records that the migration with version $1, name $2 and checksum $3 was applied, and in $4 the oldest version of the
-- schema whose programs may go on beside it. The time is a text in the form of RFC 3339, which earlier versions of this
-- program read.
INSERT INTO refinery_schema_history (version, name, applied_on, checksum, oldest_program)
VALUES ($1, $2, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), $3, $4)
