-- The file that the link with the token of hash $1 is to, whether browsers show it, whether its content is UTF-8 as a
-- whole, from when until when the link works, whether a use now would be the first one in this hour, and what the owner
-- of the file is called. No row means that there is no such link, that it has expired, or that the owner is deactivated
-- or deleted.
SELECT f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public, f.version, f.is_utf8, l.id AS link_id, l.inline, l.created_at,
       l.expires_at, l.last_used_at IS DISTINCT FROM date_trunc('hour', now(), 'UTC') AS is_first_use,
       coalesce(owner.name, owner.username) AS sender
FROM file_links l JOIN files f ON f.id = l.file_id
JOIN users owner ON owner.id = f.user_id AND owner.is_active AND NOT owner.is_deleted
WHERE l.token_hash = $1 AND l.expires_at > now()
