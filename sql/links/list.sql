-- The live links to file $1, newest first, each with the owner of the file. No row means that there is no such file, or
-- that its owner is deleted; a row without an id, that it has no live link.
SELECT f.user_id AS owner_id, l.id, l.created_at, l.expires_at, l.inline
FROM files f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
LEFT JOIN file_links l ON l.file_id = f.id AND l.expires_at > now()
WHERE f.id = $1
ORDER BY l.created_at DESC, l.id
