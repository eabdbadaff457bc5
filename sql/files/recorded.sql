-- Those of the ids $1 that have a record.
SELECT id FROM files WHERE id = ANY($1)
