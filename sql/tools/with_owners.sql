-- The files with the ids $1 whose owner is not deleted, also deleted files, in the order of ids, with the recorded
-- sizes and hashes, and as messages name them: an owner without a username by the id. Never by the e-mail address,
-- which must not get into logs.
SELECT f.id, f.filename, f.file_size, f.file_hash, COALESCE(owner.username, owner.id::text) AS owner
FROM (SELECT id, user_id, filename, file_size, file_hash FROM files
      UNION ALL SELECT id, user_id, filename, file_size, file_hash FROM deleted_files) f
JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id = ANY($1)
ORDER BY f.id
