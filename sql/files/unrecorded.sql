-- Those of the ids $1 of contents that have no record, without those that are listed for removal, and those of uploads
-- that are complete but for their record. On a standby none, because it may lack the newest records.
SELECT content.id
FROM unnest($1::uuid[]) AS content (id)
WHERE NOT pg_is_in_recovery()
  AND NOT EXISTS (SELECT FROM recorded_contents r WHERE r.id = content.id)
  AND NOT EXISTS (SELECT FROM deleted_contents listed WHERE listed.id = content.id)
  AND NOT EXISTS (SELECT FROM partial_uploads p WHERE p.file_id = content.id AND p.completed_at IS NULL)
ORDER BY content.id
