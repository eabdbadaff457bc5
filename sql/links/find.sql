-- The link with the token of hash $1 and the file that it is to, or, if it is to several, the one of them with id $2:
-- the columns of the file are null if $2 is null or none of them. Also whether browsers show the file, whether its
-- content is UTF-8 as a whole, from when until when the link works, whether a use now would be the first one in this
-- hour, whether files are sent by it, whose it is, and what the owner is called. No row means that there is no such
-- link, that it has expired, or that the owner is deactivated or deleted.
SELECT f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public, f.version, f.received_by, f.is_utf8, l.id AS link_id,
       l.inline, l.created_at, l.expires_at,
       l.last_used_at IS DISTINCT FROM date_trunc('hour', now(), 'UTC') AS is_first_use,
       num_nonnulls(l.files, l.folder) = 1 AS is_to_several, l.upload_to IS NOT NULL AS receives_files,
       l.folder AS link_folder, coalesce(owner.name, owner.username) AS sender
FROM file_links l JOIN users owner ON owner.id = l.user_id AND owner.is_active AND NOT owner.is_deleted
LEFT JOIN files f ON f.id = coalesce(l.file_id, $2) AND f.user_id = l.user_id
    AND (l.file_id IS NOT NULL OR f.id = ANY (l.files) OR f.folder >= l.folder AND f.folder < after_folder(l.folder)
         AND NOT f.is_as_received)
WHERE l.token_hash = $1 AND l.expires_at > now()
