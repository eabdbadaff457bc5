-- The recorded sizes and hashes of the next thousand contents after id $1, in the order of ids, without files whose
-- owner is deleted: a walk over the whole table in small steps.
SELECT f.id, f.file_size, f.file_hash
FROM files f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id > $1
ORDER BY f.id
LIMIT 1000
