-- The version of PostgreSQL, without what a distribution adds to it.
SELECT split_part(current_setting('server_version'), ' ', 1) AS version
