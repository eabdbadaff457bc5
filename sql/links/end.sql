-- Ends link $1 of user $2, whatever it is to. $3, $4: address and request id of the event. Returns the ended one; no
-- row means that the user has no such live link. The user's row is locked first, as everywhere, so that this and a
-- change that ends all links do not deadlock.
WITH owner AS (
    SELECT id FROM users WHERE id = $2 AND NOT is_deleted FOR NO KEY UPDATE
), ended AS (
    DELETE FROM file_links l USING owner
    WHERE l.id = $1 AND l.user_id = owner.id AND l.expires_at > now()
    RETURNING l.*
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.link_delete', user_id, CASE WHEN file_id IS NULL THEN 'link' ELSE 'file' END, coalesce(file_id, id),
           $3, $4, jsonb_strip_nulls(jsonb_build_object('link_id', id, 'files', cardinality(files),
                                                        'folder', folder_path(folder),
                                                        'upload_to', folder_path(upload_to)))
    FROM ended
)
SELECT id FROM ended
