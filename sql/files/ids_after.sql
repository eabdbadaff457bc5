-- All files, a thousand at a time, in the order of their ids.
SELECT id FROM files WHERE id > $1 ORDER BY id LIMIT 1000
