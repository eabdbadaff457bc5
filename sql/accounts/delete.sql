-- Deletes account $1 and ends its sessions; a trigger erases the personal data in its row. $2: version of the
-- credentials that were checked, null if an administrator deletes; $3, $4, $5: actor, address and request id of the
-- event; $6: whether an administrator's account stays, because the request has a personal access token. No row means
-- that there is no such account, that its credentials were changed, or that it stays. The trigger users_last_admin
-- refuses to delete the last active admin.
-- The work does not grow with the number of the user's files: no query shows files of a deleted user, and the
-- background thread removes them later.
WITH deleted AS (
    UPDATE users
    SET is_deleted = true, credentials_version = credentials_version + 1, sessions_ended_at = now(), updated_at = now()
    WHERE id = $1 AND credentials_version = coalesce($2, credentials_version) AND NOT ($6 AND role = 'admin')
      AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), queued AS (
    INSERT INTO pending_removals (user_id) SELECT id FROM deleted
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'user.delete', $3, 'user', id, $4, $5 FROM deleted
)
SELECT id, end_sessions(id) FROM deleted
