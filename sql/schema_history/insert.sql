-- Records that the migration with version $1, name $2 and checksum $3 was applied. The time is a text in the form of
-- RFC 3339, which earlier versions of this program read.
INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
VALUES ($1, $2, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), $3)
