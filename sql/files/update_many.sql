-- Makes those of the files $2 that user $1 has public or, if $3 is false, private, and moves them into folder $4, in
-- this order; null leaves a column as it is. $5, $6: address and request id of the events, of which those have one that
-- are changed. Returns the ids of those that the user has, in their order.
WITH owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted FOR NO KEY UPDATE
), file AS MATERIALIZED (
    SELECT found.* FROM owner, update_files(owner.id, $2, $3, $4) found
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.update', $1, 'file', file_id, $5, $6, jsonb_build_object('fields', fields)
    FROM file WHERE fields IS NOT NULL
)
SELECT file_id FROM file
