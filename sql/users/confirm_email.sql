-- Gives account $1 the address $3 that it asks for, in its ASCII form and in lower case: its own, if it waits, or else
-- its pending one. $2: version of the credentials that were checked; $4, $5: address and request id of the events. The
-- account is settled from now on, because its owner reads the mail of its address, and the client's network is one that
-- it knows. No row means that the account does not ask for the address any more. The unique index decides whether
-- another account has it.
-- Confirmations of one address take turns before they lock a row, so the trigger users_other_confirmations of the first
-- one finds the others free, and ends their time.
WITH turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtext('cloakroom: address ' || $3)) AS lock
), before AS MATERIALIZED (
    SELECT users.id, pending_email IS NOT NULL AS moves FROM turn, users WHERE users.id = $1 FOR NO KEY UPDATE OF users
), confirmed AS (
    UPDATE users
    SET email = coalesce(pending_email, email),
        email_ascii = CASE WHEN NOT moves THEN email_ascii
                           WHEN lower(pending_email) <> email_to_confirm THEN email_to_confirm END,
        email_confirmed = true,
        is_settled = true,
        email_changed_at = now() - interval '1 day',
        credentials_version = credentials_version + moves::integer,
        pending_email = NULL,
        email_to_confirm = NULL,
        confirmation_ends_at = NULL,
        updated_at = now()
    FROM before
    WHERE users.id = before.id AND email_to_confirm = $3 AND credentials_version = $2 AND confirmation_ends_at > now()
      AND is_active AND NOT is_deleted
    RETURNING users.id, moves
), remembered AS (
    INSERT INTO sign_in_networks (user_id, network) SELECT id, sign_in_network($4) FROM confirmed
    ON CONFLICT (user_id, network) DO UPDATE SET last_sign_in_at = now()
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT action::audit_action, id, 'user', id, $4, $5
    FROM confirmed, LATERAL (VALUES ('email.confirm', true), ('email.change', moves)) event (action, has_happened)
    WHERE has_happened
)
SELECT id FROM confirmed
