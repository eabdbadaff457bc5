-- The client's address and user agent at the sign-in of a session or at its last refresh, by which users recognise
-- their sessions. Sessions from before this migration have neither until their next refresh.
ALTER TABLE sessions ADD COLUMN address inet, ADD COLUMN user_agent text;

-- The row of an ended session stays until its last token has expired, but nobody is shown it any more, so it keeps no
-- personal data.
CREATE FUNCTION forget_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.address := NULL;
    NEW.user_agent := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER sessions_forget_client BEFORE UPDATE ON sessions FOR EACH ROW
WHEN (NEW.ended_at IS NOT NULL)
EXECUTE FUNCTION forget_client();

-- Personal access tokens, which users make for scripts. Only their hashes are stored, so nobody who reads the table can
-- use them.
CREATE TABLE personal_tokens (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the whole token.
    token_hash bytea NOT NULL CONSTRAINT personal_tokens_token_hash_key UNIQUE,
    name text NOT NULL,
    -- Whether it is accepted only for GET and HEAD.
    read_only boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- The time of the last use, rounded down to the hour.
    last_used_at timestamptz
);

CREATE INDEX personal_tokens_user ON personal_tokens (user_id);
CREATE INDEX personal_tokens_expiry ON personal_tokens (expires_at);

-- How many live tokens a user has. A function, because its statement takes a new snapshot: it counts the tokens that
-- were committed while the caller waited for the lock of the user's row.
CREATE FUNCTION count_personal_tokens(of_user uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM personal_tokens WHERE user_id = of_user AND expires_at > now());
END
$$;

-- The tokens of a user end when the password changes and when the account is deactivated or deleted. A trigger does
-- this, so that no statement can forget it. Because its statement takes a new snapshot, it also ends a token that was
-- committed while the change waited for the user's row.
CREATE FUNCTION end_personal_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM personal_tokens WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

-- The password has changed only if both its hash and the version of the credentials differ. A login that renews a hash
-- of outdated cost changes only the hash, and a new e-mail address only the version.
CREATE TRIGGER users_personal_tokens AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.is_active AND NOT NEW.is_active
      OR NOT OLD.is_deleted AND NEW.is_deleted
      OR OLD.password_hash IS DISTINCT FROM NEW.password_hash
         AND OLD.credentials_version <> NEW.credentials_version)
EXECUTE FUNCTION end_personal_tokens();
