-- How many files lie in the folder that link $1 is to, or below it, and their bytes. Of more than 10,000 both are null,
-- so no number of files makes this longer.
WITH wanted AS MATERIALIZED (
    SELECT user_id, folder FROM file_links WHERE id = $1 AND expires_at > now()
), found AS MATERIALIZED (
    SELECT file_size FROM files
    WHERE user_id = (SELECT user_id FROM wanted)
      AND folder >= (SELECT folder FROM wanted) AND folder < after_folder((SELECT folder FROM wanted))
    LIMIT 10001
)
SELECT CASE WHEN count(*) <= 10000 THEN count(*) END AS files,
       CASE WHEN count(*) <= 10000 THEN coalesce(sum(file_size), 0)::bigint END AS bytes
FROM found
