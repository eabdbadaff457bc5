-- A user's own change, against the version of the credentials that was checked. The session it comes
-- from stays ($4, null for a token without one), all others end.
WITH changed AS (
    UPDATE users
    SET password_hash = $3,
        credentials_version = credentials_version + 1,
        sessions_ended_at = CASE WHEN $4::uuid IS NULL THEN sessions_ended_at ELSE now() END,
        updated_at = now()
    WHERE id = $1 AND credentials_version = $2 AND NOT is_deleted
    RETURNING id
)
SELECT id, end_sessions(id, $4) FROM changed
