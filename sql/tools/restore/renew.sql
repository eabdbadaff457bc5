-- Makes a restored database an installation of its own, with id $1, and ends all access that was given before. Returns
-- the numbers of sessions that were open, of personal tokens that were valid and of links to files that were live,
-- which are also in the one event.
-- Sessions are deleted, because the tokens of a session without a row are not valid. sessions_ended_at ends tokens
-- without a session. The version of the credentials ends links for password resets; it grows by more than any account
-- can have changed its credentials since the backup, because the links made since then must not work either.
-- The time in which deleted files can be restored begins anew. Of uploads that were not complete a backup has no bytes.
-- Messages that were waiting are deleted: they have been sent since, or are out of date. Those that had failed stay as
-- records.
WITH installation_id AS (
    INSERT INTO installation (id) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET id = excluded.id
), ended_sessions AS (
    DELETE FROM sessions s USING users u WHERE u.id = s.user_id
    RETURNING s.ended_at IS NULL AND s.epoch = u.session_epoch AND s.expires_at > now() AS was_open
), ended_tokens AS (
    DELETE FROM personal_tokens RETURNING expires_at > now() AS was_valid
), ended_links AS (
    DELETE FROM file_links RETURNING expires_at > now() AS was_live
), uploads AS (
    DELETE FROM partial_uploads
), reset_requests AS (
    DELETE FROM password_reset_requests
), messages AS (
    DELETE FROM outbox WHERE failed_at IS NULL
), deleted_files AS (
    UPDATE deleted_files SET deleted_at = now() + place * interval '1 microsecond'
    FROM (SELECT id, row_number() OVER (ORDER BY deleted_at, id) AS place FROM deleted_files) d
    WHERE d.id = deleted_files.id
), accounts AS (
    UPDATE users SET sessions_ended_at = now(), credentials_version = credentials_version + 10000 WHERE NOT is_deleted
), ended AS (
    SELECT (SELECT count(*) FROM ended_sessions WHERE was_open) AS sessions,
           (SELECT count(*) FROM ended_tokens WHERE was_valid) AS personal_tokens,
           (SELECT count(*) FROM ended_links WHERE was_live) AS links
), event AS (
    INSERT INTO audit_events (action, details)
    SELECT 'auth.logout', jsonb_build_object(
        'scope', 'restore', 'sessions', sessions, 'tokens', personal_tokens, 'links', links
    )
    FROM ended
)
SELECT sessions, personal_tokens, links FROM ended
