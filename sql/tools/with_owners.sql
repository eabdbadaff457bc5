-- The files with the ids $1 whose owner is not deleted, also deleted files, in the order of ids, as messages name them:
-- an owner without a username by the id. Never by the e-mail address, which must not get into logs.
SELECT f.id, f.filename, COALESCE(owner.username, owner.id::text) AS owner
FROM (SELECT id, user_id, filename FROM files UNION ALL SELECT id, user_id, filename FROM deleted_files) f
JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id = ANY($1)
ORDER BY f.id
