-- The file with id $1, whoever owns it, unless its owner is deleted. One of an inactive owner is not public.
SELECT f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public AND owner.is_active AS is_public, f.version,
       f.received_by
FROM files f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
WHERE f.id = $1
