-- Lists those of the contents $1 that have no record and are not listed yet, to be removed in some days; returns their
-- ids. They stay if their records come back until then: db/removals/contents looks for these again.
INSERT INTO deleted_contents (id)
SELECT content.id FROM unnest($1::uuid[]) AS content (id)
WHERE NOT EXISTS (SELECT FROM recorded_contents r WHERE r.id = content.id)
ON CONFLICT (id) DO NOTHING
RETURNING id
