-- For tests of clients: deletes every account but the development admin, as accounts/delete does, with an event for
-- each. $1, $2, $3: actor, address and request id of the events. Returns how many it deleted.
-- The setting suspends the trigger users_last_admin until the end of this transaction.
WITH suspended AS MATERIALIZED (
    SELECT set_config('cloakroom.deletes_all_users', 'on', true) AS setting
), deleted AS (
    UPDATE users
    SET is_deleted = true, credentials_version = credentials_version + 1, sessions_ended_at = now(), updated_at = now()
    FROM suspended
    WHERE suspended.setting = 'on' AND NOT is_deleted AND NOT is_development_admin
    RETURNING id
), queued AS (
    INSERT INTO pending_removals (user_id) SELECT id FROM deleted
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT 'user.delete', $1, 'user', id, $2, $3 FROM deleted
)
SELECT count(*) AS accounts FROM deleted, end_sessions(deleted.id)
