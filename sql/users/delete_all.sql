-- For tests: every account, as if there had never been one, and the files with it. Gives how many could
-- be seen before, and the ids of the files.
WITH files_removed AS (
    DELETE FROM files USING users u WHERE u.id = files.user_id AND u.password_hash IS NOT NULL
    RETURNING files.id
), removed AS (
    DELETE FROM users WHERE password_hash IS NOT NULL RETURNING is_deleted
)
SELECT (SELECT count(*) FROM removed WHERE NOT is_deleted),
       (SELECT coalesce(array_agg(id), '{}') FROM files_removed)
