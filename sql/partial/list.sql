-- The uploads of user $1, and by its links, that are not complete, the newest first, at most $2: where there
-- are more, its own, which strangers cannot crowd out.
SELECT id, file_id, folder, filename, declared_type, description, sha256, file_size, file_offset,
       NULL::bytea AS state, boot, charged, created_at, expires_at,
       false AS is_complete, NULL::integer AS version, link_id
FROM (SELECT * FROM partial_uploads
      WHERE user_id = $1 AND completed_at IS NULL AND expires_at > now()
      ORDER BY link_id IS NOT NULL, created_at DESC, id LIMIT (SELECT $2::bigint)) newest
ORDER BY created_at DESC, id
