-- Deletes account $1: it leaves a row without personal data, its username and address become free, its sessions end.
-- No row means that there is no such account. The trigger users_last_admin refuses to delete the last active admin.
-- The work does not grow with the user's files: queries do not show files of a deleted user, and the background
-- removes them.
WITH deleted AS (
    UPDATE users
    SET is_deleted = true, username = NULL, email = NULL, name = NULL, password_hash = NULL, permissions = '{}',
        credentials_version = credentials_version + 1, sessions_ended_at = now(), updated_at = now()
    WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), queued AS (
    INSERT INTO pending_removals (user_id) SELECT id FROM deleted
)
SELECT id, end_sessions(id) FROM deleted
