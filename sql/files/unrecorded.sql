-- Those of the ids $1 of contents that have no record, and whether that is because a user deleted the file: by
-- deleted_contents or, for a file that was deleted before that table was made, by the event. Contents that
-- deleted_contents lists are left out unless $2.
SELECT content.id,
       deleted.id IS NOT NULL
       OR EXISTS (SELECT FROM audit_events
                  WHERE subject_id = content.id AND action = 'file.delete' AND outcome = 'success') AS is_deleted
FROM unnest($1::uuid[]) AS content (id)
LEFT JOIN deleted_contents deleted ON deleted.id = content.id
WHERE NOT EXISTS (SELECT FROM files WHERE files.id = content.id) AND (deleted.id IS NULL OR $2)
ORDER BY content.id
