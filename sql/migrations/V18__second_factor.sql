-- Lists of accounts have indexes of their own since V16. The drops are here, where they come first: they keep everybody
-- from the table, as the new columns do, and in the midst of a migration that has locked it they could deadlock with
-- statements that read it.
DROP INDEX users_name, users_name_desc, users_inactive;
DROP INDEX IF EXISTS users_search;

-- The second factor of an account, a one-time password by time (TOTP, RFC 6238). It is in the row of the account,
-- because a sign-in locks and changes that row anyway: one statement then decides whether a code is taken and opens the
-- session, and parallel sign-ins wait for each other there.
ALTER TABLE users
    -- The secret, sealed by a key that only the program has. Null if there is none. Until second_factor_at is set, it
    -- is only offered: it needs one right code before second_factor_pending_until to count.
    ADD COLUMN second_factor_sealed bytea,
    ADD COLUMN second_factor_pending_until timestamptz,
    -- Since when signing in needs a code. Null if it needs none.
    ADD COLUMN second_factor_at timestamptz,
    -- The time step of the last code that was taken. Only codes of later steps are, so each is taken once.
    ADD COLUMN second_factor_step bigint,
    -- SHA-256 of each recovery code that was not used yet.
    ADD COLUMN recovery_codes bytea[],
    -- Wrong codes since the last right one, from anywhere. After a hundred no code is taken until the password is
    -- another one, because whoever sends codes knows the password.
    ADD COLUMN wrong_codes integer NOT NULL DEFAULT 0,
    -- The times of wrong codes of the last hour, newest first, and the network of the client of each.
    ADD COLUMN wrong_code_times timestamptz[],
    ADD COLUMN wrong_code_networks cidr[];

-- The few accounts that have a secret, for sealing all of them anew.
CREATE INDEX users_second_factor ON users (id) WHERE second_factor_sealed IS NOT NULL;

-- How long no code is taken from the client's network, because it has sent ten wrong ones within an hour; null if one
-- is. It is null and costs nothing for accounts without wrong codes.
CREATE FUNCTION wrong_code_wait(times timestamptz[], networks cidr[], client inet) RETURNS interval
LANGUAGE sql STABLE STRICT AS $$
    SELECT sent.at + interval '1 hour' - now()
    FROM unnest(times, networks) sent (at, network)
    WHERE sent.network = sign_in_network(client) AND sent.at > now() - interval '1 hour'
    ORDER BY sent.at DESC OFFSET 9 LIMIT 1
$$;

-- Whether a code of this time step, or a recovery code with this hash, is taken from this client. One of the two is
-- null. As a condition of an UPDATE it is evaluated for the row as it is once it is locked, so of parallel requests
-- with one code one finds that it is taken.
CREATE FUNCTION takes_code(account users, client inet, step bigint, recovery_code bytea) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT account.wrong_codes < 100
           AND wrong_code_wait(account.wrong_code_times, account.wrong_code_networks, client) IS NULL
           AND (step > coalesce(account.second_factor_step, 0) OR recovery_code = ANY (account.recovery_codes))
$$;

-- Whether a session of a user is live. As a condition for the user's row it is evaluated once that is locked; and it is
-- a function for its new snapshot, which has what the transaction before did to the session.
CREATE FUNCTION is_live_session(session uuid, of_user uuid, of_epoch integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM sessions WHERE id = session AND user_id = of_user AND epoch = of_epoch AND ended_at IS NULL
    );
END
$$;

-- Whoever takes the secret away, or deletes the account, takes all that belongs to it away. A trigger, so that no
-- statement can forget it.
CREATE FUNCTION forget_second_factor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.second_factor_sealed := NULL;
    NEW.second_factor_pending_until := NULL;
    NEW.second_factor_at := NULL;
    NEW.second_factor_step := NULL;
    NEW.recovery_codes := NULL;
    NEW.wrong_codes := 0;
    NEW.wrong_code_times := NULL;
    NEW.wrong_code_networks := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER users_forget_second_factor BEFORE UPDATE ON users FOR EACH ROW
WHEN (OLD.second_factor_sealed IS NOT NULL AND (NEW.second_factor_sealed IS NULL OR NEW.is_deleted))
EXECUTE FUNCTION forget_second_factor();

-- Another password begins a new count of wrong codes: nobody who knew the one before can send any more of them. A hash
-- that is only renewed leaves the version of the credentials as it is.
CREATE FUNCTION forget_wrong_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.wrong_codes := 0;
    RETURN NEW;
END
$$;

CREATE TRIGGER users_forget_wrong_codes BEFORE UPDATE ON users FOR EACH ROW
WHEN (OLD.wrong_codes > 0 AND OLD.password_hash IS DISTINCT FROM NEW.password_hash
      AND OLD.credentials_version <> NEW.credentials_version)
EXECUTE FUNCTION forget_wrong_codes();

ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check, ADD CONSTRAINT outbox_kind_check
CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created', 'second_factor_enabled',
                'second_factor_disabled', 'recovery_code_used', 'too_many_wrong_codes'));

-- Tells the owner of an account what happened to its second factor.
CREATE FUNCTION queue_second_factor_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (kind, user_id)
    SELECT notice.kind, NEW.id
    FROM (VALUES ('second_factor_enabled', OLD.second_factor_at IS NULL AND NEW.second_factor_at IS NOT NULL),
                 ('second_factor_disabled', OLD.second_factor_at IS NOT NULL AND NEW.second_factor_at IS NULL),
                 ('recovery_code_used', cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)),
                 ('too_many_wrong_codes', NEW.wrong_codes = 100 AND OLD.wrong_codes < 100)) notice (kind, is_due)
    WHERE notice.is_due;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_second_factor_notices AFTER UPDATE ON users FOR EACH ROW
WHEN (NOT NEW.is_deleted
      AND ((OLD.second_factor_at IS NULL) <> (NEW.second_factor_at IS NULL)
           OR cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)
           OR NEW.wrong_codes = 100 AND OLD.wrong_codes < 100))
EXECUTE FUNCTION queue_second_factor_notices();

ALTER TYPE audit_action ADD VALUE 'second_factor.enable';
ALTER TYPE audit_action ADD VALUE 'second_factor.disable';
ALTER TYPE audit_action ADD VALUE 'second_factor.recovery';
