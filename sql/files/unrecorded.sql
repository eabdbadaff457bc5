-- Those of the ids $1 of contents that have no record, and whether that is because the file was deleted. Contents that
-- are listed for removal are left out unless $2.
SELECT content.id, deleted.id IS NOT NULL AS is_deleted
FROM unnest($1::uuid[]) AS content (id)
LEFT JOIN deleted_contents deleted ON deleted.id = content.id
WHERE NOT EXISTS (SELECT FROM recorded_contents r WHERE r.id = content.id) AND (deleted.id IS NULL OR $2)
ORDER BY content.id
