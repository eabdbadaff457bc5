-- Removes the records of the files $2 of the deleted user $1; returns a row for each that it removed. Contents that stay in their
-- place for some days are known by deleted_contents.
-- The user's row is locked first, as in uploads and deletions: with the same order everywhere, no two of them deadlock.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 AND is_deleted FOR NO KEY UPDATE
), removed AS (
    DELETE FROM files USING owner WHERE files.id = ANY($2) AND files.user_id = owner.id RETURNING files.id
), noted AS (
    INSERT INTO deleted_contents (id) SELECT id FROM removed
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
)
SELECT id FROM removed
