-- The next thousand files after id $1, in the order of ids: a walk over the whole table in small steps.
SELECT id FROM files WHERE id > $1 ORDER BY id LIMIT 1000
