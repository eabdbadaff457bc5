-- Takes user $1 off the list of pending removals, unless a record of a file is left. A deleted user gets no new ones.
DELETE FROM pending_removals WHERE user_id = $1 AND NOT EXISTS (SELECT FROM files WHERE files.user_id = $1)
