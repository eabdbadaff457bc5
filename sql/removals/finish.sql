-- Takes user $1, of whose files no record is left, from the waiting list. A deleted user gets no new ones.
DELETE FROM pending_removals WHERE user_id = $1 AND NOT EXISTS (SELECT FROM files WHERE files.user_id = $1)
