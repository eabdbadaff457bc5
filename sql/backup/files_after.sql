-- The next thousand files after id $1 whose owner is not deleted, in the order of ids, with what their contents must be.
SELECT f.id, f.file_size, f.file_hash
FROM files f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id > $1
ORDER BY f.id
LIMIT 1000
