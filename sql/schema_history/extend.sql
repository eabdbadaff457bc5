-- Adds what the crate `refinery` does not know. Whoever inserts without it leaves null.
ALTER TABLE refinery_schema_history ADD COLUMN IF NOT EXISTS oldest_program int
