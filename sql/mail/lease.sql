-- Takes the message that has been due longest, those about password resets first, those of an import late and those of
-- registrations last, for ten minutes: if it has not been removed or deferred by then, it is due again. No row means
-- that no message is due. Several processes may run this at once: SKIP LOCKED gives each of them another row. The
-- account is looked up in the same statement, so that the message is written with its present data; one of a
-- registration has none. The e-mail address is null if the message must not be sent any more: because the account has
-- been deleted or deactivated since, unless the message is the notice at an old address, or because it is a link, or
-- tells of received files, and the account has got another address, or an invitation and the account has a password by
-- now. If another account has the address that a message would confirm, the owner of that account is told so instead,
-- unless it is inactive. $1: whether this process opens sealed tokens; messages with one are left to others if not.
WITH leased AS (
    UPDATE outbox SET attempts = attempts + 1, due_at = now() + interval '10 minutes', waits_for_server = false
    WHERE id = (SELECT id FROM outbox WHERE failed_at IS NULL AND due_at <= now() AND ($1 OR sealed_token IS NULL)
                ORDER BY priority, due_at, id LIMIT 1
                FOR UPDATE SKIP LOCKED)
    RETURNING id, kind, user_id, address, email_key, created_at, attempts, network, sealed_token, files
)
SELECT leased.id, CASE WHEN owner.id IS NOT NULL THEN 'email_taken' ELSE leased.kind END AS kind,
       leased.user_id, leased.created_at, leased.attempts,
       CASE
           WHEN leased.kind = 'email_changed' THEN leased.address
           WHEN leased.user_id IS NULL OR u.is_active AND NOT u.is_deleted
                AND (leased.kind NOT IN ('password_reset', 'invitation', 'files_received')
                     OR leased.email_key = u.email_key)
                AND (leased.kind <> 'invitation' OR u.password_hash IS NULL)
           THEN CASE WHEN owner.id IS NULL THEN coalesce(leased.address, u.email)
                     WHEN owner.is_active THEN owner.email END
       END AS address,
       u.credentials_version, u.username, host(leased.network) || '/' || masklen(leased.network) AS network,
       leased.sealed_token, leased.files, u.identity_email
FROM leased
LEFT JOIN users u ON u.id = leased.user_id
LEFT JOIN users owner ON leased.kind = 'email_confirmation'
     AND owner.email_key = leased.email_key AND NOT owner.is_deleted AND NOT owner.is_development_admin
