-- Removes the record of a file of user $2. The owner's row is locked first, as uploads do it. Gives the
-- file's owner and whether the record is gone; no row: no such file.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 FOR NO KEY UPDATE
), removed AS (
    DELETE FROM files USING owner WHERE files.id = $1 AND files.user_id = owner.id RETURNING files.id
)
SELECT before.user_id, removed.id IS NOT NULL FROM files before LEFT JOIN removed ON true WHERE before.id = $1
