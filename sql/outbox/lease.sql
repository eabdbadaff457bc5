-- Takes the message that has been due longest, those about password resets first, for ten minutes: if it has not been
-- removed or deferred by then, it is due again. No row means that no message is due. Several processes may run this at
-- once: SKIP LOCKED gives each of them another row. The account is looked up in the same statement, so that the message
-- is written with its present data. The e-mail address is null if the message must not be sent any more: because the
-- account has been deleted or deactivated since, unless the message is the notice at an old address, or because it is a
-- link and the account has got another address, or an invitation and the account has other credentials than those it
-- was made with, or the account does not ask any more for the address that the message would confirm. If another
-- account has that address, its owner is told so instead. Messages from before version 12 of the schema have no
-- address.
WITH leased AS (
    UPDATE outbox SET attempts = attempts + 1, due_at = now() + interval '10 minutes', waits_for_server = false
    WHERE id = (SELECT id FROM outbox WHERE failed_at IS NULL AND due_at <= now()
                ORDER BY kind <> 'password_reset', due_at, id LIMIT 1
                FOR UPDATE SKIP LOCKED)
    RETURNING id, kind, user_id, address, created_at, attempts, network
)
SELECT leased.id,
       CASE
           WHEN leased.kind = 'email_confirmation' AND EXISTS (
               SELECT FROM users owner
               WHERE lower(coalesce(owner.email_ascii, owner.email)) = u.email_to_confirm
                 AND owner.email_confirmed AND NOT owner.is_deleted AND NOT owner.is_development_admin
           ) THEN 'email_taken'
           ELSE leased.kind
       END AS kind,
       leased.user_id, leased.created_at, leased.attempts,
       CASE
           WHEN leased.kind = 'email_changed' THEN leased.address
           WHEN u.is_active AND NOT u.is_deleted
                AND (leased.kind <> 'password_reset' OR coalesce(lower(leased.address) = lower(u.email), true))
                AND (leased.kind <> 'invitation' OR u.credentials_version = 1)
                AND (leased.kind <> 'email_confirmation'
                     OR u.confirmation_ends_at > now()
                        AND lower(leased.address) IN (lower(coalesce(u.pending_email, u.email)), u.email_to_confirm))
           THEN coalesce(leased.address, u.email)
       END AS address,
       u.credentials_version, u.username, host(leased.network) || '/' || masklen(leased.network) AS network,
       u.email_to_confirm, u.confirmation_ends_at
FROM leased JOIN users u ON u.id = leased.user_id
