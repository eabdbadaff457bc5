-- Whether the account is settled although it is younger than a day: an administrator made it, or its owner has used a
-- link from a mail. Anybody can register accounts with somebody else's address, so mail for accounts that are not
-- settled is limited for each mailbox.
ALTER TABLE users ADD COLUMN is_settled boolean NOT NULL DEFAULT false;
-- When the account got its present address, if it had another one before. For a day it is not settled, or an old
-- account could move to somebody else's address and have mail sent there. Null again when its owner has used a link.
ALTER TABLE users ADD COLUMN email_changed_at timestamptz;

ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check, ADD CONSTRAINT outbox_kind_check
CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created'));

-- In the order of sending: somebody waits for a link, and nobody for a notice.
DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox ((kind <> 'password_reset'), due_at, id) WHERE failed_at IS NULL;

-- When mail was queued lately: the latest times, newest first, of notices of one kind to one account, or of mail to one
-- mailbox. A row whose times are a day old limits nothing and is removed.
CREATE TABLE mail_counts (
    -- SHA-256 of what is counted, so that no address is kept.
    key bytea PRIMARY KEY,
    queued_at timestamptz[] NOT NULL
);

-- Counts a mail, unless there were `most` of its kind within a day; returns whether it may be queued. The condition of
-- the update decides that: it sees what another transaction committed while this one waited for the row.
CREATE FUNCTION admit_mail(counted text, most integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mail_counts AS c (key, queued_at) VALUES (sha256(convert_to(counted, 'UTF8')), ARRAY[now()])
    ON CONFLICT (key) DO UPDATE SET queued_at = (now() || c.queued_at)[1:most]
    WHERE c.queued_at[most] IS NULL OR c.queued_at[most] <= now() - interval '1 day';
    RETURN FOUND;
END
$$;

-- The mailbox of an address in its ASCII form: the address in lower case without what follows a plus sign before its
-- domain, which many servers ignore, and without quotes and backslashes, which may stand around and in the same name
-- (RFC 5321, 4.1.2).
CREATE FUNCTION mailbox(address text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT translate(regexp_replace(lower(address), '\+.*(@[^@]*)$', '\1'), '"\', '')
$$;

-- Drops a message that would be one too many. An account causes at most ten notices of a new password a day, five of a
-- new address and five of a new token; the first ones, which warn an owner, are always sent. A mailbox gets at most
-- twelve messages a day from accounts that are not settled, all together. Those for settled accounts are neither
-- limited by that nor counted, so nobody can use up what an owner may get.
CREATE FUNCTION limit_mail() RETURNS trigger LANGUAGE plpgsql AS $$
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
    IF (account.is_settled OR account.created_at <= now() - interval '1 day')
       AND coalesce(account.email_changed_at <= now() - interval '1 day', true)
       OR admit_mail(mailbox(counted), 12) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER outbox_limits BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION limit_mail();

-- As before, but the trigger on outbox has the limits. Two notices are queued in the order of their mailboxes, as other
-- statements do, so that they do not deadlock.
CREATE OR REPLACE FUNCTION queue_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (kind, user_id, address)
    SELECT notice.kind, NEW.id, notice.address
    FROM (VALUES ('password_changed', NULL, NEW.password_hash <> OLD.password_hash),
                 ('email_changed', coalesce(OLD.email_ascii, OLD.email), lower(NEW.email) <> lower(OLD.email)))
         notice (kind, address, is_due)
    WHERE notice.is_due
    ORDER BY mailbox(coalesce(notice.address, NEW.email_ascii, NEW.email));
    RETURN NULL;
END
$$;

-- Notes that an account has moved to another address. The name puts it after users_notices: the notice to the old
-- address is limited by what the account was there.
CREATE FUNCTION unsettle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE users SET email_changed_at = now() WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_unsettle AFTER UPDATE ON users FOR EACH ROW
WHEN (lower(NEW.email) <> lower(OLD.email))
EXECUTE FUNCTION unsettle();

-- Tells the owner of an account that a personal access token was created.
CREATE FUNCTION queue_token_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (kind, user_id) VALUES ('token_created', NEW.user_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER personal_tokens_notice AFTER INSERT ON personal_tokens FOR EACH ROW
EXECUTE FUNCTION queue_token_notice();

-- A link for a password reset is good for one version of the credentials. A change of is_active raises it too, so a
-- link from before a deactivation stays dead when the account is active again. A trigger, so that no statement can
-- forget it.
CREATE FUNCTION raise_credentials_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.credentials_version := OLD.credentials_version + 1;
    RETURN NEW;
END
$$;

CREATE TRIGGER users_credentials_version BEFORE UPDATE ON users FOR EACH ROW
WHEN (NEW.is_active <> OLD.is_active AND NEW.credentials_version = OLD.credentials_version)
EXECUTE FUNCTION raise_credentials_version();
