-- Mail to accounts that a mail server has not accepted yet. The row is removed once the server has accepted the
-- message. What a message says is looked up when it is sent, so nothing here can be used as a token.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL
        CONSTRAINT outbox_kind_check CHECK (kind IN ('password_reset', 'password_changed', 'email_changed')),
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The address to send to, if that is not the account's present one: a notice of a new address goes to the old one.
    address text,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- How often the message was taken for sending. If two processes have taken the same message one after the other,
    -- the first one recognises by this number that the message is no longer its own.
    attempts integer NOT NULL DEFAULT 0,
    -- When the message may be taken. Taking it sets this to a later time, after which others may take it: the process
    -- that took it may have crashed. A failed attempt sets it to the time of the next one.
    due_at timestamptz NOT NULL DEFAULT now(),
    -- Set once the message is given up, with the reason. The address is erased then.
    failed_at timestamptz,
    error text
);

CREATE INDEX outbox_due ON outbox (due_at, id) WHERE failed_at IS NULL;
CREATE INDEX outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;
-- For each account at most one message about a password reset waits to be sent, however many are requested.
CREATE UNIQUE INDEX outbox_password_reset_key ON outbox (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL;

-- When messages about a password reset were last sent to an account: the ten latest times, newest first. They limit how
-- often the account gets one.
CREATE TABLE password_reset_messages (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    sent_at timestamptz[] NOT NULL
);

-- Tells the owner of an account that its password or its e-mail address was changed. It is a trigger, so that the
-- notice is stored in the transaction of the change, and no query can forget it. A hash that is only renewed at a login
-- leaves credentials_version as it is.
CREATE FUNCTION queue_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.password_hash <> OLD.password_hash THEN
        INSERT INTO outbox (kind, user_id) VALUES ('password_changed', NEW.id);
    END IF;
    IF lower(NEW.email) <> lower(OLD.email) THEN
        INSERT INTO outbox (kind, user_id, address) VALUES ('email_changed', NEW.id, OLD.email);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_notices AFTER UPDATE ON users FOR EACH ROW
WHEN (NEW.credentials_version <> OLD.credentials_version AND NOT NEW.is_deleted AND NOT NEW.is_development_admin)
EXECUTE FUNCTION queue_notices();
