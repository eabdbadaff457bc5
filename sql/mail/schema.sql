-- Asked-for password resets that wait for the background thread, known address or not.
CREATE TABLE password_reset_requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email_key text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    -- Where it was requested from. The event is written later, when the account is looked up, so that the time of the
    -- response does not tell whether there is one.
    address inet,
    request_id uuid
);

-- When messages about a password reset were last sent to an account: the ten latest times, newest first. They limit how
-- often the account gets one.
CREATE TABLE password_reset_messages (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    sent_at timestamptz[] NOT NULL
);

-- Anybody may request password resets of an account as often as the rate limits let them, and events are kept for a
-- year. So that this cannot fill the disk, an account has one event of it in two minutes. The requests that come
-- meanwhile are counted here, and mail/insert_counted_resets.sql writes an event for them when the two minutes are
-- over. There is a row for each account that had such an event within two minutes.
CREATE TABLE password_reset_counts (
    user_id uuid PRIMARY KEY,
    -- When the last event was written.
    event_at timestamptz NOT NULL DEFAULT now(),
    -- How many requests have come since.
    requests bigint NOT NULL
);

CREATE TABLE used_password_reset_tokens (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    token_hash text NOT NULL CONSTRAINT used_password_reset_tokens_token_hash_key UNIQUE,
    used_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE INDEX used_password_reset_tokens_expiry ON used_password_reset_tokens (expires_at);

-- Mail to accounts, and to addresses with which somebody registers, that a mail server has not accepted yet. The row is
-- removed once the server has accepted the message. What a message says is looked up when it is sent, or stands in its
-- token, which serves only together with a password.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL
        CONSTRAINT outbox_kind_check
        CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created', 'second_factor_enabled',
                        'second_factor_disabled', 'recovery_code_used', 'recovery_codes_renewed',
                        'too_many_wrong_codes', 'invitation', 'email_confirmation', 'email_change_requested',
                        'files_lost', 'files_received', 'identity_joined')),
    -- Null for a registration, which is no account yet.
    user_id uuid REFERENCES users ON DELETE CASCADE,
    -- The address to send to, if that is not the account's present one: a notice of a new address goes to the old one.
    address text,
    -- By which it is compared with others, as in users. The row has both or neither.
    email_key text CONSTRAINT outbox_email_key_check CHECK ((address IS NULL) = (email_key IS NULL)),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- How often the message was taken for sending. If two processes have taken the same message one after the other,
    -- the first one recognises by this number that the message is no longer its own.
    attempts integer NOT NULL DEFAULT 0,
    -- When the message may be taken. Taking it sets this to a later time, after which others may take it: the process
    -- that took it may have crashed. A failed attempt sets it to the time of the next one.
    due_at timestamptz NOT NULL DEFAULT now(),
    -- Whether the last attempt failed because the mail server could not be used, whatever the recipient.
    waits_for_server boolean NOT NULL DEFAULT false,
    -- Set once the message is given up, with the reason. Address, network and token are erased then.
    failed_at timestamptz,
    error text,
    -- The network of the client who asked for the message, if that is known.
    network cidr,
    -- The token of a link that confirms the address, sealed by a key that only the program has.
    sealed_token bytea CONSTRAINT outbox_sealed_token_check
        CHECK ((kind = 'email_confirmation') = (sealed_token IS NOT NULL) OR failed_at IS NOT NULL),
    -- How many files came by links since the last such mail, for one that tells of them.
    files integer CONSTRAINT outbox_files_check CHECK ((kind = 'files_received') = (files IS NOT NULL)),
    -- Whether an import has made it, beside thousands of others.
    is_imported boolean NOT NULL DEFAULT false,
    -- The order of sending: resets first, because somebody waits for them, and nobody waits for a notice; registrations
    -- last, because anybody causes as many as they like, and before them what an import makes.
    priority smallint GENERATED ALWAYS AS (
        CASE WHEN kind = 'password_reset' THEN 0 WHEN is_imported THEN 2 WHEN user_id IS NULL THEN 3 ELSE 1 END
    ) STORED,
    CONSTRAINT outbox_user_check CHECK (user_id IS NOT NULL OR kind = 'email_confirmation')
);

CREATE INDEX outbox_due ON outbox (priority, due_at, id) WHERE failed_at IS NULL;
CREATE INDEX outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX outbox_waiting ON outbox (priority, due_at) WHERE waits_for_server;
-- For each account at most one message about a password reset waits to be sent, however many are requested.
CREATE UNIQUE INDEX outbox_password_reset_key ON outbox (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL;

CREATE INDEX outbox_user ON outbox (user_id);

-- When mail was queued lately: the latest times, newest first, of notices of one kind to one account, of its wishes for
-- another address, or of mail to one mailbox, and for the latter the network of the client who caused each, if that is
-- known. A row whose times are a day old limits nothing and is removed.
CREATE TABLE mail_counts (
    -- SHA-256 of what is counted, so that no address is kept.
    key bytea PRIMARY KEY,
    queued_at timestamptz[] NOT NULL,
    networks cidr[] NOT NULL
);

-- How long a mail has to wait because `most` were queued within a day, or three that `client` has caused; null if it
-- does not.
CREATE FUNCTION mail_count_wait(times timestamptz[], networks cidr[], most integer, client cidr) RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT max(at) + interval '1 day' - now()
    FROM (
        SELECT times[most] AS at
        UNION ALL (
            SELECT queued.at FROM unnest(times, networks) queued (at, network)
            WHERE queued.network = client ORDER BY queued.at DESC OFFSET 2 LIMIT 1
        )
    ) full_since
    WHERE at > now() - interval '1 day'
$$;

-- Counts a mail and returns null, or returns how long it has to wait. The condition of the update decides that: it sees
-- what another transaction committed while this one waited for the row.
CREATE FUNCTION mail_wait(counted text, most integer, client cidr DEFAULT NULL) RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    counted_key bytea := sha256(convert_to(counted, 'UTF8'));
BEGIN
    INSERT INTO mail_counts AS c (key, queued_at, networks) VALUES (counted_key, ARRAY[now()], ARRAY[client])
    ON CONFLICT (key) DO UPDATE
    SET queued_at = (now() || c.queued_at)[1:most], networks = (array_prepend(client, c.networks))[1:most]
    WHERE mail_count_wait(c.queued_at, c.networks, most, client) IS NULL;
    RETURN CASE WHEN NOT FOUND THEN (
        SELECT mail_count_wait(c.queued_at, c.networks, most, client) FROM mail_counts c WHERE key = counted_key
    ) END;
END
$$;

-- The mailbox of the key of an address: the key without what follows a plus sign before its domain, which many servers
-- ignore, and without quotes and backslashes, which may stand around and in the same name (RFC 5321, 4.1.2).
CREATE FUNCTION mailbox(email_key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT translate(regexp_replace(email_key, '\+.*(@[^@]*)$', '\1'), '"\', '')
$$;

-- How long the mail of a registration has to wait, which is counted if that is null. Fails if 10,000 of these mails
-- wait to be sent. Registrations take turns here, and each counts what the one before it left.
CREATE FUNCTION registration_wait(email_key text, client cidr) RETURNS interval LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: registrations'));
    IF (SELECT count(*) >= 10000 FROM outbox WHERE failed_at IS NULL AND priority = 3) THEN
        RAISE EXCEPTION 'too many registrations wait for their mail'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'outbox_registrations';
    END IF;
    RETURN mail_wait(mailbox(email_key), 12, client);
END
$$;

-- Drops a message that would be one too many. An account causes at most ten notices of a new password a day, five of a
-- new address and five of a new token; the first ones, which warn an owner, are always sent. A mailbox gets at most
-- twelve messages a day, of which one network causes at most three, for accounts that are not settled, for
-- registrations, and for accounts that wish to have its address, all together. Others for settled accounts are neither
-- limited by that nor counted, so nobody can use up what an owner may get. Registrations and wishes are limited by the
-- statements that queue them. Who causes a notice is signed in, so it counts for the network of the latest sign-in.
-- Strangers cause mails that tell of received files: only settled accounts get them, an hour after the last one at the
-- earliest, and ten a day, so one that is too early waits.
CREATE FUNCTION limit_mail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account users;
    is_settled boolean;
BEGIN
    IF NEW.kind = 'email_confirmation' THEN
        -- The key of a name that is not ASCII may be another mailbox. The mail goes to the one that it confirms.
        IF octet_length(substring(NEW.address FROM '(.*)@')) <> length(substring(NEW.address FROM '(.*)@')) THEN
            NEW.address := NEW.email_key;
        END IF;
        RETURN CASE WHEN NEW.user_id IS NULL OR mail_wait(mailbox(NEW.email_key), 12, NEW.network) IS NULL THEN NEW END;
    END IF;
    IF NEW.kind NOT IN ('password_reset', 'email_change_requested', 'files_received') AND mail_wait(
        NEW.kind || ' ' || NEW.user_id, CASE NEW.kind WHEN 'password_changed' THEN 10 ELSE 5 END
    ) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    SELECT * INTO account FROM users WHERE id = NEW.user_id;
    -- It goes where the account is now, or the account could move to another mailbox before the message is sent.
    NEW.address := coalesce(NEW.address, account.email);
    NEW.email_key := coalesce(NEW.email_key, account.email_key);
    is_settled := (account.is_settled OR account.created_at <= now() - interval '1 day')
                  AND coalesce(account.email_changed_at <= now() - interval '1 day', true);
    IF NEW.kind = 'files_received' AND is_settled THEN
        INSERT INTO mail_counts AS c (key, queued_at, networks)
        VALUES (sha256(convert_to(NEW.kind || ' ' || NEW.user_id, 'UTF8')), ARRAY[now()], '{}')
        ON CONFLICT (key) DO UPDATE
        SET queued_at = (greatest(now(), c.queued_at[1] + interval '1 hour', c.queued_at[10] + interval '1 day')
                         || c.queued_at)[1:10]
        RETURNING queued_at[1], queued_at[1] INTO NEW.due_at, NEW.created_at;
    END IF;
    RETURN CASE WHEN is_settled OR NEW.kind <> 'files_received'
                     AND mail_wait(mailbox(coalesce(NEW.email_key, '')), 12, coalesce(NEW.network, (
                    SELECT network FROM sign_in_networks WHERE user_id = NEW.user_id
                    ORDER BY last_sign_in_at DESC LIMIT 1
                ))) IS NULL THEN NEW END;
END
$$;

-- Tells an owner by mail that so many more files came by links: with a mail that waits, for its time or for the server,
-- or with a new one. One that is being sent meanwhile has its number already. The caller has locked the owner's row.
CREATE FUNCTION queue_mail_of_received_files(owner uuid, more integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outbox SET files = files + more
    WHERE id = (SELECT id FROM outbox
                WHERE user_id = owner AND kind = 'files_received' AND (attempts = 0 OR waits_for_server)
                ORDER BY id DESC LIMIT 1)
      AND (attempts = 0 OR waits_for_server);
    IF NOT FOUND THEN
        INSERT INTO outbox (kind, user_id, files) VALUES ('files_received', owner, more);
    END IF;
END
$$;

CREATE TRIGGER outbox_limits BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION limit_mail();

-- Tells the owner of an account that its password, its e-mail address, its second factor or its identity was changed.
-- It is a trigger, so that the notice is stored in the transaction of the change, and no query can forget it. A hash
-- that is only renewed at a login leaves credentials_version as it is. Notices are queued in the order of their
-- mailboxes, as other statements do, so that they do not deadlock.
CREATE FUNCTION queue_notices() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_new_version boolean := NEW.credentials_version <> OLD.credentials_version;
BEGIN
    INSERT INTO outbox (kind, user_id, address, email_key)
    SELECT notice.kind, NEW.id, notice.address, notice.email_key
    FROM (VALUES
        ('password_changed', NEW.email, NEW.email_key, is_new_version AND NEW.password_hash IS DISTINCT FROM OLD.password_hash),
        ('email_changed', OLD.email, OLD.email_key, is_new_version AND NEW.email_key <> OLD.email_key),
        ('second_factor_enabled', NEW.email, NEW.email_key,
         OLD.second_factor_at IS NULL AND NEW.second_factor_at IS NOT NULL),
        ('second_factor_disabled', NEW.email, NEW.email_key,
         OLD.second_factor_at IS NOT NULL AND NEW.second_factor_at IS NULL),
        ('recovery_code_used', NEW.email, NEW.email_key,
         cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)),
        ('identity_joined', NEW.email, NEW.email_key,
         NEW.identity_subject IS NOT NULL AND (NEW.identity_issuer, NEW.identity_subject)
             IS DISTINCT FROM (OLD.identity_issuer, OLD.identity_subject)),
        ('too_many_wrong_codes', NEW.email, NEW.email_key, NEW.wrong_codes = 100 AND OLD.wrong_codes < 100)
    ) notice (kind, address, email_key, is_due)
    WHERE notice.is_due
    ORDER BY mailbox(notice.email_key);
    -- Records that the account has moved to another address, unless the statement says by itself since when it has it,
    -- because its owner has confirmed it. It comes last, because the notice to the old address is limited by what the
    -- account was there.
    IF NEW.email_key <> OLD.email_key AND NEW.email_changed_at IS NOT DISTINCT FROM OLD.email_changed_at THEN
        UPDATE users SET email_changed_at = now() WHERE id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_notices AFTER UPDATE ON users FOR EACH ROW
WHEN (NOT NEW.is_deleted AND NOT NEW.is_development_admin
      AND (NEW.credentials_version <> OLD.credentials_version
           OR NEW.email_key <> OLD.email_key
           OR (OLD.second_factor_at IS NULL) <> (NEW.second_factor_at IS NULL)
           OR cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)
           OR NEW.wrong_codes = 100 AND OLD.wrong_codes < 100))
EXECUTE FUNCTION queue_notices();
