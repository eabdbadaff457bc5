-- Gives account $1 the role $2, as the provider says. $3, $4: address and request id of the event; $5: version of the
-- credentials with which the account was found, so that nobody has left its identity since. Another role ends the
-- sessions, because their tokens carry the old one. The trigger users_last_admin refuses to take away the last active
-- admin. No row means that nothing was changed.
WITH before AS (
    SELECT id, role FROM users
    WHERE id = $1 AND role <> $2 AND credentials_version = $5 AND is_active AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), changed AS (
    UPDATE users SET role = $2, sessions_ended_at = now(), updated_at = now()
    FROM before WHERE users.id = before.id
    RETURNING users.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.role', id, 'user', id, $3, $4, jsonb_build_object('by', 'oidc', 'old', role, 'new', $2)
    FROM before
)
SELECT end_sessions(id) FROM changed
