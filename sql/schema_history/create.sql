-- The table of applied migrations. It has the name and the columns that programs of schema 23 read, so that they say
-- that a schema is newer, and stop; nothing else reads `checksum`, or the time.
CREATE TABLE refinery_schema_history (
    version int PRIMARY KEY, name varchar(255), applied_on varchar(255), checksum varchar(255), oldest_program int
)
