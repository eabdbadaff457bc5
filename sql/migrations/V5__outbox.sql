-- Mail to accounts that has not been handed to a mail server yet. The row goes when the server has taken the message.
-- What a message says is looked up when it is sent, so nothing here can be used as a token.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL
        CONSTRAINT outbox_kind_check CHECK (kind IN ('password_reset', 'password_changed', 'email_changed')),
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- Where the message goes, if not to the account's address of that moment: the one that was replaced.
    address text,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- How often the message was taken for sending. It tells two processes apart that took the same message.
    attempts integer NOT NULL DEFAULT 0,
    -- When the message may be taken. Taking it sets this to the time by which it must have been sent, so that a process
    -- that ends without a word leaves it to the others; a failure sets it to the time of the next attempt.
    due_at timestamptz NOT NULL DEFAULT now(),
    -- Set once the message is given up, with the reason. The address is erased then.
    failed_at timestamptz,
    error text
);

CREATE INDEX outbox_due ON outbox (due_at, id) WHERE failed_at IS NULL;
CREATE INDEX outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;
-- One message about a reset waits for each account, however often it is asked for.
CREATE UNIQUE INDEX outbox_password_reset_key ON outbox (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL;

-- When the last messages about a password reset were sent to an account: up to ten times, the newest first.
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
