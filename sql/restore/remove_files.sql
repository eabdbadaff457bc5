-- Removes the records of the files $1, whose contents are damaged in the backup, with an event for each, and the keys
-- of their uploads, so that clients can send them again. The triggers keep the totals right.
WITH removed AS (
    DELETE FROM files WHERE id = ANY ($1) RETURNING id
), given_up AS (
    DELETE FROM deleted_files WHERE id = ANY ($1) RETURNING id
), no_longer_known AS (
    DELETE FROM idempotency_keys WHERE file_id = ANY ($1)
)
INSERT INTO audit_events (action, subject_type, subject_id, details)
SELECT 'file.delete', 'file', id, jsonb_build_object('reason', 'damaged in the backup')
FROM (TABLE removed UNION ALL TABLE given_up) gone
