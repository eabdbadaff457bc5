-- Deletes account $1: its username and address become free, its sessions end, and the records of its files go.
-- Returns the ids of the files. The trigger users_last_admin refuses to delete the last active admin.
WITH deleted AS (
    UPDATE users
    SET is_deleted = true, sessions_ended_at = now(), updated_at = now()
    WHERE id = $1 AND NOT is_deleted AND password_hash IS NOT NULL
    RETURNING id
)
SELECT remove_files(id) AS file_ids, end_sessions(id) FROM deleted
