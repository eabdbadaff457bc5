-- Takes the second factor of user $1 away, as an administrator asks, and ends the user's sessions. $2, $3, $4: actor,
-- address and request id of the event, which says whether there was one. No row means that there is no such account.
WITH before AS (
    SELECT id, second_factor_at IS NOT NULL AS had_one FROM users
    WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
    FOR NO KEY UPDATE
), changed AS (
    UPDATE users SET second_factor_sealed = NULL, sessions_ended_at = now() FROM before WHERE users.id = before.id
    RETURNING users.id, before.had_one
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'second_factor.disable', $2, 'user', id, $3, $4, jsonb_build_object('had_one', had_one) FROM changed
)
SELECT id, had_one, end_sessions(id) FROM changed
