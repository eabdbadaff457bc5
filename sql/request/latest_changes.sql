-- The number of the latest change of the files of each of the users $1. Two look-ups in indexes for each of them.
SELECT u.id, greatest((SELECT max(change_number) FROM files WHERE user_id = u.id),
                      (SELECT max(change_number) FROM file_deletions WHERE user_id = u.id), 0) AS latest_change
FROM unnest($1::uuid[]) u (id)
