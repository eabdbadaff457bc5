-- Changes file $1 if user $2 owns it. $3: filename; $4: description; $5: whether it is public; $11: folder; null
-- leaves a column as it is, and an empty description is none. $6, $7: address and request id of the event. $8: the
-- versions of which the file must have one, or null for any; $9: those that it must not have; $10: when it must not
-- have changed after, to the second, or null. No row means that there is no such file, or that its owner is deleted; a
-- row without an id means that it is not the user's, or, with is_own, that it has not the version or time.
-- The row is locked before it is compared, so that the event says what this statement changed, and not what another
-- one did meanwhile; and before it that of the owner, so that the changes of one owner's files are numbered in the
-- order of their commits. A request that changes nothing is no event.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 AND NOT is_deleted FOR NO KEY UPDATE
), before AS (
    SELECT files.id, folder, filename, description, is_public, version, files.updated_at
    FROM files JOIN owner ON owner.id = user_id WHERE files.id = $1
    FOR NO KEY UPDATE OF files
), file AS (
    UPDATE files
    SET folder = coalesce($11, before.folder),
        filename = coalesce($3, before.filename),
        description = nullif(coalesce($4, before.description), ''),
        is_public = coalesce($5, before.is_public),
        updated_at = now()
    FROM before
    WHERE files.id = before.id
      AND ($8::integer[] IS NULL OR before.version = ANY ($8)) AND before.version <> ALL ($9::integer[])
      AND ($10::timestamptz IS NULL OR date_trunc('second', before.updated_at) <= $10)
    RETURNING files.*
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.update', file.user_id, 'file', file.id, $6, $7, jsonb_build_object('fields', names)
    FROM file
    JOIN before ON before.id = file.id
    CROSS JOIN changed_columns(to_jsonb(before), to_jsonb(file),
                               ARRAY['filename', 'description', 'is_public', 'folder']) names
    WHERE names <> '{}'
)
SELECT file.id, file.user_id, file.folder, file.filename, file.original_filename, file.content_type, file.file_size,
       file.file_hash, file.description, file.upload_date, file.updated_at, file.is_public, file.version,
       file.received_by, found.user_id AS owner_id, EXISTS (SELECT FROM before) AS is_own
FROM files found JOIN users owner ON owner.id = found.user_id AND NOT owner.is_deleted
LEFT JOIN file ON file.id = found.id
WHERE found.id = $1
