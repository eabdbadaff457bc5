-- Ends every session of user $1 as an administrator asks, and revokes every token without a session that was issued
-- until now. No row means that there is no such account.
WITH owner AS (
    UPDATE users SET sessions_ended_at = now() WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
)
SELECT id, end_sessions(id) FROM owner
