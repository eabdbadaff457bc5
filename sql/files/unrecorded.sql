-- Those of the ids $1 of contents that have no record, and whether that is because a user deleted the file: a backup
-- kept the content, or there is an event, as for files that were deleted before the migration that made kept_contents.
SELECT content.id,
       EXISTS (SELECT FROM kept_contents WHERE kept_contents.id = content.id)
       OR EXISTS (SELECT FROM audit_events
                  WHERE subject_id = content.id AND action = 'file.delete' AND outcome = 'success') AS is_deleted
FROM unnest($1::uuid[]) AS content (id)
WHERE NOT EXISTS (SELECT FROM files WHERE files.id = content.id)
ORDER BY content.id
