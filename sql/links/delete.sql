-- Ends link $3 to file $1 of user $2. $4, $5: address and request id of the event. Returns the owner of the file, and
-- whether a live link was ended; no row means that there is no such file, or that its owner is deleted. The user's row
-- is locked first, as everywhere, so that this and a change that ends all links do not deadlock.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 AND NOT is_deleted FOR NO KEY UPDATE
), ended AS (
    DELETE FROM file_links l USING owner
    WHERE l.id = $3 AND l.file_id = $1 AND l.user_id = owner.id AND l.expires_at > now()
    RETURNING l.id, l.file_id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.link_delete', $2, 'file', file_id, $4, $5, jsonb_build_object('link_id', id) FROM ended
)
SELECT f.user_id AS owner_id, ended.id IS NOT NULL AS is_ended
FROM files f JOIN users u ON u.id = f.user_id AND NOT u.is_deleted
LEFT JOIN ended ON true
WHERE f.id = $1
