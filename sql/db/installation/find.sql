-- The installation id, null if the database has none yet, and whether any file is recorded. It is asked
-- before migrations are applied, too, so it names nothing that the oldest schema which they lead from lacks.
SELECT (SELECT id FROM installation) AS id, EXISTS (SELECT FROM recorded_contents) AS has_files
