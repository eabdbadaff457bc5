-- The recorded sizes and hashes of the next thousand contents after id $1, in the order of ids, also of deleted files,
-- but not of those whose owner is deleted: a walk over both tables in small steps.
SELECT f.id, f.file_size, f.file_hash
FROM recorded_contents f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id > $1
ORDER BY f.id
LIMIT 1000
