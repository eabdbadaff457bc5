-- The command user reset-password: sets the password of user $1 to the one with hash $2. All sessions end, as after the
-- use of a link from a mail, and so do personal access tokens and links that were sent before. The event has no actor,
-- because nobody is signed in. No row means that the account is gone.
WITH changed AS (
    UPDATE users
    SET password_hash = $2,
        credentials_version = credentials_version + 1,
        sessions_ended_at = now(),
        updated_at = now()
    WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, subject_type, subject_id)
    SELECT 'password.reset', 'user', id FROM changed
)
SELECT id, end_sessions(id) FROM changed
