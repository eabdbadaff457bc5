-- Removes up to $1 uploads whose time is over. Returns each, with the id of the file that it was to be, whose content
-- may be in its place: null if not all bytes are there, or it has a record. Those that are locked wait for another
-- time.
DELETE FROM partial_uploads WHERE id = ANY (ARRAY(
    SELECT id FROM partial_uploads WHERE expires_at <= now() ORDER BY expires_at
    LIMIT (SELECT $1::bigint) FOR UPDATE SKIP LOCKED))
RETURNING id, CASE WHEN completed_at IS NULL AND file_offset = file_size THEN file_id END AS file_id
