-- For tests of clients: removes every account, as if there had never been one, and the records of all files. Returns
-- how many accounts were not deleted before, and the ids of the files. The rows themselves go, which the trigger of
-- the last admin does not watch; the development admin stays.
WITH files_removed AS (
    DELETE FROM files USING users u WHERE u.id = files.user_id AND u.password_hash IS NOT NULL
    RETURNING files.id
), removed AS (
    DELETE FROM users WHERE password_hash IS NOT NULL RETURNING is_deleted
)
SELECT (SELECT count(*) FROM removed WHERE NOT is_deleted) AS accounts,
       (SELECT coalesce(array_agg(id), '{}') FROM files_removed) AS file_ids
