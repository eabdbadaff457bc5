-- Uses refresh token $3 of session $2 of user $1. $4: the token that replaces it; $5: when the session's last token
-- expires then; $6: the grace in seconds; $7: the maximum age of a session in seconds; $8: the client's address; $9:
-- its user agent; $10: request id of the event. Returns the user, the refresh token that is valid now, and when the
-- session expires.
-- The session's current token is replaced by $4. For a token that was replaced less than the grace ago, the current one
-- is returned, so parallel refreshes and retries after a lost response all continue with the same token. Any other
-- token was stolen or replayed: the session ends, which is an event.
-- A session that an OpenID provider has opened has an end of its own, which LEAST leaves out where it is null.
-- The lock of the session's row makes parallel uses wait for each other, and each sees what the one before it left.
-- If it waits for the end of all other sessions, the session has a later epoch than the user's row had before.
WITH rotated AS (
    UPDATE sessions s
    SET refresh_id = CASE WHEN refresh_id = $3 THEN $4 ELSE refresh_id END,
        rotated_ids = CASE WHEN refresh_id = $3 THEN (refresh_id || rotated_ids)[1:8] ELSE rotated_ids END,
        rotated_at = CASE WHEN refresh_id = $3 THEN (now() || rotated_at)[1:8] ELSE rotated_at END,
        expires_at = LEAST(CASE WHEN refresh_id = $3 THEN $5 ELSE s.expires_at END,
                           s.created_at + make_interval(secs => $7), s.ends_at),
        ended_at = CASE
            WHEN refresh_id = $3
                 OR rotated_at[array_position(rotated_ids, $3)] + make_interval(secs => $6) >= now() THEN NULL
            ELSE now()
        END,
        address = $8,
        user_agent = $9
    FROM users u
    WHERE s.id = $2 AND s.user_id = $1 AND s.ended_at IS NULL AND s.expires_at > now()
      AND s.created_at + make_interval(secs => $7) > now() AND coalesce(s.ends_at > now(), true)
      AND u.id = s.user_id AND s.epoch >= u.session_epoch AND u.is_active AND NOT u.is_deleted
    RETURNING s.user_id, s.refresh_id, s.expires_at, s.ended_at
), event AS (
    INSERT INTO audit_events (action, outcome, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'auth.refresh_reuse', 'failure', user_id, 'session', $2, $8, $10 FROM rotated WHERE ended_at IS NOT NULL
)
SELECT a.*, CASE WHEN r.ended_at IS NULL THEN r.refresh_id END AS refresh_id, r.expires_at,
       r.ended_at IS NOT NULL AS was_reused
FROM users u CROSS JOIN account(u) a LEFT JOIN rotated r ON r.user_id = u.id
WHERE u.id = $1 AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
