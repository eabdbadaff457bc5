-- Takes the message that has been due longest, for ten minutes: if it has not been removed or deferred by then, it is
-- due again. No row means that no message is due. Several processes may run this at once: SKIP LOCKED gives each of
-- them another row. The account is looked up in the same statement, so that the message is written with its present
-- data. The e-mail address is null if the account has been deleted or deactivated since, unless the message goes to an
-- address of its own.
WITH leased AS (
    UPDATE outbox SET attempts = attempts + 1, due_at = now() + interval '10 minutes'
    WHERE id = (SELECT id FROM outbox WHERE failed_at IS NULL AND due_at <= now() ORDER BY due_at, id LIMIT 1
                FOR UPDATE SKIP LOCKED)
    RETURNING id, kind, user_id, address, created_at, attempts
)
SELECT leased.id, leased.kind, leased.user_id, leased.created_at, leased.attempts,
       coalesce(leased.address, CASE WHEN u.is_active AND NOT u.is_deleted THEN u.email END) AS address,
       u.name, u.credentials_version
FROM leased JOIN users u ON u.id = leased.user_id
