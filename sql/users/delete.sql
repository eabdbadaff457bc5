-- Deletes an account: its name and address are free, its sessions end, the records of its files go.
-- Gives the ids of the files. A trigger keeps the last active admin.
WITH deleted AS (
    UPDATE users
    SET is_deleted = true, sessions_ended_at = now(), updated_at = now()
    WHERE id = $1 AND NOT is_deleted AND password_hash IS NOT NULL
    RETURNING id
)
SELECT remove_files(id), end_sessions(id) FROM deleted
