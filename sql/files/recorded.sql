-- Which of these files have a record.
SELECT id FROM files WHERE id = ANY($1)
