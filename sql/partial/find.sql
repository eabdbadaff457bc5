-- Upload $1 of user $2 or, if $3 is not null, by that link; whether it is complete, and the version of its file, null
-- if that is gone. No row means that there is none.
SELECT p.id, p.file_id, p.folder, p.filename, declared_type, p.description, sha256, p.file_size, file_offset, state,
       boot, charged, p.created_at, p.expires_at, p.link_id, f.version,
       p.completed_at IS NOT NULL AS is_complete
FROM partial_uploads p LEFT JOIN files f ON f.id = p.file_id AND p.completed_at IS NOT NULL
WHERE p.id = $1 AND p.user_id = $2 AND link_id IS NOT DISTINCT FROM $3 AND p.expires_at > now()
