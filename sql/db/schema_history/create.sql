-- The table of applied migrations. `oldest_program` is the oldest version of the schema whose programs may use the
-- database after the migration.
CREATE TABLE refinery_schema_history (
    version int PRIMARY KEY, name text, applied_on text, oldest_program int
)
