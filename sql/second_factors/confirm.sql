-- Switches the offered second factor of user $1 on, and ends the user's other sessions. $2: its sealed secret, by which
-- the code was checked; $3: the time step of the code; $4: hashes of the recovery codes; $5: the session that stays,
-- null for a token without one; $6, $7: address and request id of the event. No row means that it is no longer offered.
WITH changed AS (
    UPDATE users
    SET second_factor_at = now(), second_factor_pending_until = NULL, second_factor_step = $3, recovery_codes = $4,
        sessions_ended_at = now()
    WHERE id = $1 AND second_factor_sealed = $2 AND second_factor_at IS NULL AND second_factor_pending_until > now()
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'second_factor.enable', id, 'user', id, $6, $7 FROM changed
)
SELECT id, end_sessions(id, $5) FROM changed
