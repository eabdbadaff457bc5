-- Takes the second factor of user $1 away, as the user asks. $2: version of the credentials that were checked; $3: the
-- client's address; $4: time step of the code, or null; $5: hash of the recovery code in its place, or null; $6:
-- request id of the events. No row means that the code is not taken, or that the account was changed. The trigger
-- that tells the owner of used recovery codes does not see this use, because there are none left.
WITH changed AS (
    UPDATE users SET second_factor_sealed = NULL
    WHERE id = $1 AND credentials_version = $2 AND second_factor_at IS NOT NULL AND takes_code(users, $3, $4, $5)
    RETURNING id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'second_factor.disable'::audit_action, id, 'user', id, $3, $6::uuid FROM changed
    UNION ALL
    SELECT 'second_factor.recovery', id, 'user', id, $3, $6 FROM changed WHERE (SELECT $5::bytea) IS NOT NULL
), notice AS (
    INSERT INTO outbox (kind, user_id)
    SELECT 'recovery_code_used', id FROM changed WHERE (SELECT $5::bytea) IS NOT NULL
)
SELECT id FROM changed
