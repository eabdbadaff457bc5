-- Those of the ids $1 that have a record, and whether the owner is deleted. If so, the background thread is about to
-- remove the record and the content.
SELECT f.id, owner.is_deleted AS is_owner_deleted
FROM files f JOIN users owner ON owner.id = f.user_id
WHERE f.id = ANY($1)
