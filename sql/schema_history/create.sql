-- The table of applied migrations, as the crate `refinery` makes it, with which earlier versions of this program
-- migrated.
CREATE TABLE refinery_schema_history (
    version int PRIMARY KEY, name varchar(255), applied_on varchar(255), checksum varchar(255)
)
