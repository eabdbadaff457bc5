-- Moves files of user $1 from folder $2 to $3, see move_folder. $4, $5: address and request id of the event. No row:
-- there is no such user.
WITH owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted FOR NO KEY UPDATE
), outcome AS MATERIALIZED (
    SELECT moved, remaining, problem FROM owner, move_folder(owner.id, $2, $3)
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'folder.move', $1, 'user', $1, $4, $5,
           jsonb_build_object('folder', folder_path($2), 'to', folder_path($3), 'count', moved)
    FROM outcome WHERE moved > 0
)
SELECT moved, remaining, problem FROM outcome
