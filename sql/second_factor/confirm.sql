-- Switches the offered second factor of user $1 on, and ends the user's other sessions. $2: its sealed secret, by which
-- the code was checked; $3: the time step of the code; $4: hashes of the recovery codes; $5: the session that stays,
-- null for a token without one; $6, $7: address and request id of the event; $8: version of the credentials with which
-- the request was authenticated. No row means that the account or its session is no longer as it was then: the body of
-- the request may come slowly. Otherwise the row says whether the second factor was still offered.
WITH account AS (
    SELECT id FROM users
    WHERE id = $1 AND credentials_version = $8 AND is_active AND NOT is_deleted
      AND ((SELECT $5::uuid) IS NULL OR is_live_session($5, id, session_epoch))
    FOR NO KEY UPDATE
), changed AS (
    UPDATE users
    SET second_factor_at = now(), second_factor_pending_until = NULL, second_factor_step = $3, recovery_codes = $4,
        sessions_ended_at = now()
    FROM account
    WHERE users.id = account.id AND second_factor_sealed = $2 AND second_factor_at IS NULL
      AND second_factor_pending_until > now()
    RETURNING users.id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'second_factor.enable', id, 'user', id, $6, $7 FROM changed
)
SELECT changed.id IS NOT NULL AS is_confirmed, end_sessions(changed.id, $5)
FROM account LEFT JOIN changed ON true
