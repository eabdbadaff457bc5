-- One use of refresh token $3 of session $2. The good one makes way for $4. One that was rotated
-- within the grace ($6 seconds) gets the token that is good now: so parallel refreshes, and a retry
-- after a lost answer, go on with one chain. Any other was stolen or replayed: the session ends.
-- The row's lock puts parallel uses in a line, and each sees what the one before it left.
WITH rotated AS (
    UPDATE sessions s
    SET refresh_id = CASE WHEN refresh_id = $3 THEN $4 ELSE refresh_id END,
        rotated_ids = CASE WHEN refresh_id = $3 THEN (refresh_id || rotated_ids)[1:8] ELSE rotated_ids END,
        rotated_at = CASE WHEN refresh_id = $3 THEN (now() || rotated_at)[1:8] ELSE rotated_at END,
        expires_at = CASE WHEN refresh_id = $3 THEN $5 ELSE s.expires_at END,
        ended_at = CASE
            WHEN refresh_id = $3
                 OR rotated_at[array_position(rotated_ids, $3)] + make_interval(secs => $6) >= now() THEN NULL
            ELSE now()
        END
    FROM users u
    WHERE s.id = $2 AND s.user_id = $1 AND s.ended_at IS NULL AND s.expires_at > now()
      AND u.id = s.user_id AND u.is_active AND NOT u.is_deleted
    RETURNING s.user_id, s.refresh_id, s.ended_at
)
SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
       u.last_login, u.total_uploads, u.total_storage_used,
       CASE WHEN r.ended_at IS NULL THEN r.refresh_id END AS refresh_id,
       r.ended_at IS NOT NULL AS was_reused
FROM users u LEFT JOIN rotated r ON r.user_id = u.id
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND u.password_hash IS NOT NULL
