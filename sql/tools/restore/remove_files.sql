-- Removes the records of the files $1, also of deleted ones, whose contents are damaged or lost, with an event $2 for
-- each, whose reason is $3, and the keys of their uploads, so that clients can send them again; if $4, with a mail to
-- each owner. The triggers keep the totals right, and tell of the deletions. The owners are locked before their files,
-- as by all that deletes files.
WITH owners AS MATERIALIZED (
    SELECT id FROM users WHERE id IN (SELECT user_id FROM recorded_contents WHERE id = ANY ($1))
    ORDER BY id FOR NO KEY UPDATE
), removed AS (
    DELETE FROM files USING owners WHERE files.id = ANY ($1) AND user_id = owners.id RETURNING files.id, user_id
), given_up AS (
    DELETE FROM deleted_files USING owners WHERE deleted_files.id = ANY ($1) AND user_id = owners.id
    RETURNING deleted_files.id, user_id
), gone AS (
    TABLE removed UNION ALL TABLE given_up
), no_longer_known AS (
    DELETE FROM idempotency_keys WHERE file_id = ANY ($1)
), mail AS (
    INSERT INTO outbox (kind, user_id) SELECT DISTINCT 'files_lost', user_id FROM gone WHERE $4
)
INSERT INTO audit_events (action, subject_type, subject_id, details)
SELECT $2::text::audit_action, 'file', id, jsonb_build_object('reason', $3::text) FROM gone
