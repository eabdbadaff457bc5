-- Removes the records $2 of files of the deleted user $1; returns how many there were. The user's row is locked first,
-- as uploads and deletions do: the trigger on files locks that of storage.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 AND is_deleted FOR NO KEY UPDATE
), removed AS (
    DELETE FROM files USING owner WHERE files.id = ANY($2) AND files.user_id = owner.id RETURNING files.id
)
SELECT count(*) AS removed FROM removed
