-- The installation id, null if the database has none yet, and whether any file is recorded.
SELECT (SELECT id FROM installation) AS id, EXISTS (SELECT FROM recorded_contents) AS has_files
