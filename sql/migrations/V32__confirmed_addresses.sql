-- Addresses that must be confirmed: of accounts that wait, and of accounts that ask for another address.
ALTER TABLE users
ADD COLUMN email_confirmed boolean NOT NULL DEFAULT true,
ADD COLUMN pending_email text,
ADD COLUMN email_to_confirm text,
ADD COLUMN confirmation_ends_at timestamptz;

DROP INDEX users_email_key;
CREATE UNIQUE INDEX users_email_key ON users (lower(coalesce(email_ascii, email)))
WHERE NOT is_deleted AND NOT is_development_admin AND email_confirmed;
CREATE INDEX users_email_to_confirm ON users (email_to_confirm, email_confirmed, confirmation_ends_at)
WHERE email_to_confirm IS NOT NULL;
CREATE INDEX users_confirmation_ends ON users (email_confirmed, confirmation_ends_at)
WHERE confirmation_ends_at IS NOT NULL;
-- For the removal of accounts: PostgreSQL looks for the rows of each.
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX outbox_user ON outbox (user_id);
CREATE INDEX used_password_reset_tokens_user ON used_password_reset_tokens (user_id);

CREATE TABLE email_confirmation_tries (
    token_id uuid PRIMARY KEY,
    tries smallint NOT NULL,
    -- When the token expires. From then on the row may be removed.
    expires_at timestamptz NOT NULL
);

ALTER TABLE password_reset_requests ADD COLUMN is_confirmation boolean NOT NULL DEFAULT false;
ALTER TABLE outbox
ADD COLUMN network cidr,
DROP CONSTRAINT outbox_kind_check,
ADD CONSTRAINT outbox_kind_check
CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created', 'second_factor_enabled',
                'second_factor_disabled', 'recovery_code_used', 'recovery_codes_renewed',
                'too_many_wrong_codes', 'invitation', 'email_confirmation', 'email_change_requested'));

CREATE OR REPLACE FUNCTION keep_an_admin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: last admin'));
    IF NOT EXISTS (SELECT FROM users
                   WHERE role = 'admin' AND is_active AND email_confirmed
                     AND NOT is_deleted AND NOT is_development_admin) THEN
        RAISE EXCEPTION 'the last active admin stays'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'users_last_admin';
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION limit_mail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account users;
    counted text;
BEGIN
    IF NEW.kind <> 'password_reset' AND NOT admit_mail(
        NEW.kind || ' ' || NEW.user_id, CASE NEW.kind WHEN 'password_changed' THEN 10 ELSE 5 END
    ) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO account FROM users WHERE id = NEW.user_id;
    -- It goes where the account is now, or the account could move to another mailbox before the message is sent.
    counted := coalesce(NEW.address, account.email_ascii, account.email, '');
    NEW.address := coalesce(NEW.address, account.email);
    IF NEW.kind = 'email_confirmation' THEN
        counted := coalesce(account.email_to_confirm, counted);
        NEW.address := coalesce(account.pending_email, account.email);
        -- Lower case may make another mailbox of a name that is not ASCII. The mail goes to the one that it confirms.
        IF octet_length(substring(NEW.address FROM '(.*)@')) <> length(substring(NEW.address FROM '(.*)@')) THEN
            NEW.address := counted;
        END IF;
    ELSIF account.email_confirmed AND (account.is_settled OR account.created_at <= now() - interval '1 day')
          AND coalesce(account.email_changed_at <= now() - interval '1 day', true) THEN
        RETURN NEW;
    END IF;
    -- Half of them to other forms of the address, which help its owner less.
    IF NEW.kind = 'email_confirmation' OR NOT account.email_confirmed THEN
        IF lower(counted) <> mailbox(counted) AND NOT admit_mail('form of ' || mailbox(counted), 6) THEN
            RETURN NULL;
        END IF;
    END IF;
    IF admit_mail(mailbox(counted), 12) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END
$$;

DROP TRIGGER users_unsettle ON users;
CREATE TRIGGER users_unsettle AFTER UPDATE ON users FOR EACH ROW
WHEN (lower(NEW.email) <> lower(OLD.email) AND NEW.email_changed_at IS NOT DISTINCT FROM OLD.email_changed_at)
EXECUTE FUNCTION unsettle();

CREATE FUNCTION end_other_confirmations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE users SET confirmation_ends_at = now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM users WHERE email_to_confirm = lower(coalesce(NEW.email_ascii, NEW.email)) AND id <> NEW.id
        LIMIT 10000 FOR NO KEY UPDATE SKIP LOCKED
    ));
    RETURN NULL;
END
$$;

CREATE TRIGGER users_other_confirmations AFTER UPDATE OF email, email_confirmed ON users FOR EACH ROW
WHEN (NEW.email_confirmed AND NOT NEW.is_deleted
      AND (NOT OLD.email_confirmed OR lower(NEW.email) <> lower(OLD.email)))
EXECUTE FUNCTION end_other_confirmations();

CREATE FUNCTION admit_waiting_account() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: waiting accounts'));
    RETURN (SELECT count(*) < 10000 FROM users WHERE NOT email_confirmed AND confirmation_ends_at IS NOT NULL);
END
$$;

ALTER TYPE audit_action ADD VALUE 'email.change_request' AFTER 'email.change';
ALTER TYPE audit_action ADD VALUE 'email.confirm' AFTER 'email.change_request';
DROP TRIGGER audit_events_own_links ON audit_events;
CREATE TRIGGER audit_events_own_links BEFORE INSERT ON audit_events FOR EACH ROW
WHEN ((NEW.action::text IN ('file.link_create', 'file.link_delete', 'file.restore', 'file.purge')
       OR NEW.action::text IN ('second_factor.enable', 'second_factor.disable', 'second_factor.recovery',
                               'email.change_request', 'email.confirm')
          AND NEW.outcome = 'success' AND NEW.actor_id = NEW.subject_id)
      AND NOT NEW.details ? 'hour')
EXECUTE FUNCTION limit_own_changes();
