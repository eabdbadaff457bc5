-- Replaces the recovery codes of user $1. $2: version of the credentials that were checked; $3: the client's address;
-- $4: time step of the code, or null; $5: hash of the recovery code in its place, or null; $6: hashes of the new codes;
-- $7: request id of the events. No row means that the code is not taken, or that the account was changed. The trigger
-- that tells the owner of changes sees neither the new codes nor the use of one, because there are ten again.
WITH changed AS (
    UPDATE users
    SET second_factor_step = coalesce($4, second_factor_step), recovery_codes = $6, wrong_codes = 0
    WHERE id = $1 AND credentials_version = $2 AND second_factor_at IS NOT NULL AND takes_code(users, $3, $4, $5)
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'second_factor.enable'::audit_action, id, 'user', id, $3, $7::uuid, '{"new_recovery_codes": true}'::jsonb
    FROM changed
    UNION ALL
    SELECT 'second_factor.recovery', id, 'user', id, $3, $7, '{}' FROM changed WHERE (SELECT $5::bytea) IS NOT NULL
), notice AS (
    INSERT INTO outbox (kind, user_id)
    SELECT 'recovery_codes_renewed', id FROM changed
    UNION ALL
    SELECT 'recovery_code_used', id FROM changed WHERE (SELECT $5::bytea) IS NOT NULL
)
SELECT id FROM changed
