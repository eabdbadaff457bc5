-- Makes those of the files $2 that user $1 has public or, if $3 is false, private, in this order. $4, $5: address and
-- request id of the events, of which those have one that are changed. Returns the ids of those that the user has, in
-- their order.
WITH owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted FOR NO KEY UPDATE
), file AS MATERIALIZED (
    SELECT found.* FROM owner, publish_files(owner.id, $2, $3) found
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.update', $1, 'file', file_id, $4, $5, '{"fields": ["is_public"]}' FROM file WHERE is_changed
)
SELECT file_id FROM file
