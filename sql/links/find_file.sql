-- The file that the link with the token of hash $1 is to, whether browsers show it, and whether all of its content is
-- UTF-8. No row means that there is no such link, that it has expired, or that the owner of the file is deactivated or
-- deleted.
SELECT f.id, f.user_id, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash, f.description,
       f.upload_date, f.updated_at, f.is_public, f.version, f.is_utf8, l.inline
FROM file_links l JOIN files f ON f.id = l.file_id
JOIN users owner ON owner.id = f.user_id AND owner.is_active AND NOT owner.is_deleted
WHERE l.token_hash = $1 AND l.expires_at > now()
