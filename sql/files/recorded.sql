-- Those of the ids $1 that have a record, also if the owner is deleted.
SELECT id FROM files WHERE id = ANY($1)
