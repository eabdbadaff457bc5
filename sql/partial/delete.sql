-- Ends upload $1 of user $2 or, if $3 is not null, by that link; the user ends those by links, too. Returns the id of
-- the file that it was to be, whose content may be in its place: null if not all bytes are there, or it has a record.
-- No row means that there is no such upload. The user's row is locked first.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 FOR NO KEY UPDATE
)
DELETE FROM partial_uploads p USING owner
WHERE p.id = $1 AND user_id = owner.id AND ($3::uuid IS NULL OR link_id = $3) AND expires_at > now()
RETURNING CASE WHEN completed_at IS NULL AND file_offset = file_size THEN file_id END AS file_id
