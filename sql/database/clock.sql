-- The time by the clock of the database server, in seconds since 1970.
SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds
