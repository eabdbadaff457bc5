-- All live links of user $1, newest first.
SELECT l.id, l.file_id, f.filename, cardinality(l.files) AS files, l.folder, l.created_at, l.expires_at, l.inline,
       l.last_used_at, l.upload_to, l.max_files, l.max_bytes, l.received_files, l.received_bytes, l.note, l.notify
FROM file_links l LEFT JOIN files f ON f.id = l.file_id
WHERE l.user_id = $1 AND l.expires_at > now()
ORDER BY l.created_at DESC, l.id
