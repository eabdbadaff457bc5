-- The schema, in reading order: installation, accounts, sessions, second factors, password resets, personal access
-- tokens, files, links, lists of accounts, mail, the audit log. Whoever changes this file raises
-- the version in `src/db/migrations.rs`, so that no program uses a database that another one made. Many functions exist
-- because a statement sees the database as it was when it began, even after it has waited for a lock: a statement
-- within a plpgsql function takes a new snapshot.

-- Of texts that are compared, this collation folds the case, and "C" decides the order, which is that of code points.
-- So the same names are taken and found in every database: lower() alone follows the rules of the database's locale.
-- This one, which glibc and musl have, makes one character of one; PostgreSQL 15 has no such collation of its own.
CREATE COLLATION by_character (provider = libc, locale = 'C.UTF-8');

-- A text with its case folded. The result has the collation of the argument, so columns are COLLATE "C". The body is an
-- expression, which is inlined, and of which no search path decides what it means.
CREATE FUNCTION folded(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower($1 COLLATE by_character);

-- Says which data directory belongs to this database: both hold the same random id, which the program makes at its
-- first start.
CREATE TABLE installation (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_is_only_check CHECK (is_only),
    id uuid NOT NULL
);

-- Accounts. That of a deleted user stays as a row without personal data, so that ids in the audit log keep their
-- meaning. One row is no person's: the development admin cannot sign in, holds no name against others, and never counts
-- as an admin.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    username text COLLATE "C",
    email text,
    name text,
    password_hash text,
    role text NOT NULL DEFAULT 'user' CONSTRAINT users_role_check CHECK (role IN ('user', 'admin')),
    permissions text[] NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT true,
    is_deleted boolean NOT NULL DEFAULT false,
    -- Changes with the password, the e-mail address and is_active: a reset token is good for one version.
    credentials_version integer NOT NULL DEFAULT 1,
    -- Tokens without a session are good when they are younger than this.
    sessions_ended_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_login timestamptz,
    -- Kept by the triggers on files.
    total_uploads bigint NOT NULL DEFAULT 0,
    total_storage_used bigint NOT NULL DEFAULT 0,
    is_development_admin boolean NOT NULL DEFAULT false,
    -- The address as it is compared, so that a@ｅxample.com is A@example.com: in NFC, with the case folded and the
    -- domain in ASCII (IDNA, UTS #46). SQL can compute only that of an address in ASCII.
    email_key text COLLATE "C",
    -- Whether the account is settled although it is younger than a day: an administrator made it, or its owner has used
    -- a link from a mail. Anybody can register accounts with somebody else's address, so mail for accounts that are not
    -- settled is limited for each mailbox.
    is_settled boolean NOT NULL DEFAULT false,
    -- When the account got its present address, if it had another one before. For a day it is not settled, or an old
    -- account could move to somebody else's address and have mail sent there. Null again when its owner has used a
    -- link.
    email_changed_at timestamptz,
    -- All sessions of a user end in the same time however many there are: a session is live only while it carries this
    -- epoch, and ending all of them raises it.
    session_epoch integer NOT NULL DEFAULT 1,
    -- The second factor, a one-time password by time (TOTP, RFC 6238). It is in the row of the account, because a
    -- sign-in locks and changes that row anyway: one statement then decides whether a code is taken and opens the
    -- session, and parallel sign-ins wait for each other there. This is the secret, sealed by a key that only the
    -- program has. Null if there is none. Until second_factor_at is set, it is only offered: it needs one right code
    -- before second_factor_pending_until to count.
    second_factor_sealed bytea,
    second_factor_pending_until timestamptz,
    -- Since when signing in needs a code. Null if it needs none.
    second_factor_at timestamptz,
    -- The time step of the last code that was taken. Only codes of later steps are, so each is taken once.
    second_factor_step bigint,
    -- SHA-256 of each recovery code that was not used yet.
    recovery_codes bytea[],
    -- Wrong codes since the last right one, from anywhere. After a hundred no code is taken until the password is
    -- another one, because whoever sends codes knows the password.
    wrong_codes integer NOT NULL DEFAULT 0,
    -- The times of wrong codes of the last hour, newest first, and the network of the client of each.
    wrong_code_times timestamptz[],
    wrong_code_networks cidr[],
    -- Whether the account's owner has registered it, and no administrator has made it. Anybody can make such accounts,
    -- so while they are younger than seven days, all of them together may store a part of the service's quota only.
    is_self_registered boolean NOT NULL DEFAULT false,
    -- The user's deleted files that can still be restored. Kept by the triggers on deleted_files.
    deleted_files bigint NOT NULL DEFAULT 0,
    deleted_bytes bigint NOT NULL DEFAULT 0,
    -- What all of the user's files take, also the deleted ones and those whose contents wait for their removal; see the
    -- function disk_usage. Kept by the triggers on their tables.
    disk_usage bigint NOT NULL DEFAULT 0,
    -- How many deletions of the user's files file_deletions has, and the number of the latest one that it has no more.
    remembered_deletions bigint NOT NULL DEFAULT 0,
    forgotten_change bigint NOT NULL DEFAULT 0,
    -- The most bytes and files that the user may have, set by an administrator. Null for the default of the settings.
    storage_quota bigint CONSTRAINT users_storage_quota_check CHECK (storage_quota >= 0),
    file_quota bigint CONSTRAINT users_file_quota_check CHECK (file_quota >= 0),
    CONSTRAINT users_email_key_check CHECK ((email IS NULL) = (email_key IS NULL)),
    CONSTRAINT users_complete_check
    CHECK (is_deleted OR email IS NOT NULL AND (is_development_admin OR password_hash IS NOT NULL))
);

-- Unique without regard to case, among accounts that are not deleted.
CREATE UNIQUE INDEX users_username_key ON users (folded(username)) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE UNIQUE INDEX users_email_key ON users (email_key) WHERE NOT is_deleted AND NOT is_development_admin;
-- The order in which exports read.
CREATE INDEX users_created ON users (created_at, id) WHERE NOT is_deleted AND NOT is_development_admin;
-- The few among the many: admins, and accounts that have a secret of a second factor, which are all sealed anew at a
-- start.
CREATE INDEX users_admins ON users (created_at, id)
WHERE role = 'admin' AND NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_second_factor ON users (id) WHERE second_factor_sealed IS NOT NULL;
-- The young ones among those that registered themselves, also deleted accounts, whose contents may still be there.
CREATE INDEX users_self_registered ON users (created_at) WHERE is_self_registered;
-- Those who have the most deleted bytes.
CREATE INDEX users_deleted_bytes ON users (deleted_bytes) WHERE deleted_bytes > 0;

-- What is shown of an account. Queries that return accounts join it, for instance by `FROM users u, account(u) a`. It
-- is inlined, so it costs nothing, and only the columns that it names are read.
CREATE FUNCTION account(u users) RETURNS TABLE (
    id uuid, username text, email text, name text, role text, permissions text[], is_active boolean,
    created_at timestamptz, updated_at timestamptz, last_login timestamptz, total_uploads bigint,
    total_storage_used bigint, storage_quota bigint, file_quota bigint, second_factor boolean,
    credentials_version integer
) LANGUAGE sql STABLE AS $$
    SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
           u.last_login, u.total_uploads, u.total_storage_used, u.storage_quota, u.file_quota,
           u.second_factor_at IS NOT NULL, u.credentials_version
$$;

-- The key of an address in ASCII is the address in lower case. The program computes it as well; this keeps those rows
-- right that something else inserts or copies.
CREATE FUNCTION set_email_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.email_key := folded(NEW.email);
    RETURN NEW;
END
$$;

CREATE TRIGGER users_email_key BEFORE INSERT OR UPDATE OF email ON users FOR EACH ROW
WHEN (octet_length(NEW.email) = length(NEW.email))
EXECUTE FUNCTION set_email_key();

-- The last active admin stays. Changes that take one away wait for each other, and each then looks anew at what the one
-- before it left. The query users/delete_all suspends the rule for its own transaction, because it deletes all
-- accounts.
CREATE FUNCTION keep_an_admin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: last admin'));
    IF NOT EXISTS (SELECT FROM users
                   WHERE role = 'admin' AND is_active AND NOT is_deleted AND NOT is_development_admin) THEN
        RAISE EXCEPTION 'the last active admin stays'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'users_last_admin';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_last_admin AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.role = 'admin' AND OLD.is_active AND NOT OLD.is_deleted AND NOT OLD.is_development_admin
      AND NOT (NEW.role = 'admin' AND NEW.is_active AND NOT NEW.is_deleted)
      AND current_setting('cloakroom.deletes_all_users', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION keep_an_admin();

-- Deleted users whose files still have records, which the program removes in small batches. It is a table and not an
-- index on users, because an index on their totals would have to be updated with every upload.
CREATE TABLE pending_removals (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE
);

-- One row a sign-in. An ended session stays until its last token has expired: it is the blacklist.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The refresh token that is good now, and the ones it replaced, newest first, with the time of
    -- each rotation. Eight are remembered; nobody rotates more often within the grace.
    refresh_id uuid NOT NULL,
    rotated_ids uuid[] NOT NULL DEFAULT '{}',
    rotated_at timestamptz[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When the last token of the session has expired.
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- The client's address and user agent at the sign-in of a session or at its last refresh, by which users recognise
    -- their sessions.
    address inet,
    user_agent text,
    -- The session is live only while this is the epoch of its user.
    epoch integer NOT NULL DEFAULT 1
);

CREATE INDEX sessions_expiry ON sessions (expires_at);
-- The live sessions of a user, newest first.
CREATE INDEX sessions_live ON sessions (user_id, epoch, created_at DESC, id) WHERE ended_at IS NULL;

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

-- Epochs that are over, with sessions that the background thread has not marked as ended yet. Until it has, the rows
-- keep the addresses and user agents of clients. There is no reference to users, which would only cost a look-up.
CREATE TABLE ended_epochs (
    user_id uuid NOT NULL,
    epoch integer NOT NULL,
    PRIMARY KEY (user_id, epoch)
);

-- Ends the sessions of a user, but not `but_not`, and returns how many, for the event. It counts no further than the
-- thousand that a user may have. The count is in the order of the index sessions_live, so that the planner takes that
-- and no other plan. Sign-ins and other ends of all sessions lock the user's row too, so they come before or after.
-- A function, because each of its statements takes a new snapshot: `but_not` may have been kept by another end of all
-- sessions while the caller waited for the user's row. If that has ended it instead, it stays so.
CREATE FUNCTION end_sessions(of_user uuid, but_not uuid DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ended_epoch integer;
    ended bigint;
BEGIN
    UPDATE users SET session_epoch = session_epoch + 1 WHERE id = of_user
    RETURNING session_epoch - 1 INTO ended_epoch;
    UPDATE sessions SET epoch = ended_epoch + 1
    WHERE id = but_not AND user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL;
    ended := (SELECT count(*) FROM (
        SELECT FROM sessions WHERE user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL
        ORDER BY created_at DESC, id LIMIT 1000
    ) live);
    IF ended > 0 THEN
        INSERT INTO ended_epochs (user_id, epoch) VALUES (of_user, ended_epoch);
    END IF;
    RETURN ended;
END
$$;

-- Ends a session if a user has as many as `most`, so that there is room for another one: one that was never refreshed
-- and whose access token has expired, or else the one least recently refreshed. The caller has locked the user's row,
-- and this is a function for its new snapshot, so parallel sign-ins do not exceed the limit. It looks at no more than
-- the `most` oldest sessions and one, so its work does not grow if there are more, and they become fewer.
CREATE FUNCTION make_room_for_session(of_user uuid, of_epoch integer, most bigint, access_lifetime interval)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET ended_at = now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM (
            SELECT id, created_at, rotated_at FROM sessions
            WHERE user_id = of_user AND epoch = of_epoch AND ended_at IS NULL AND expires_at > now()
            ORDER BY created_at, id DESC LIMIT most + 1
        ) oldest
        ORDER BY rotated_at = '{}' AND created_at < now() - access_lifetime,
                 coalesce(rotated_at[1], created_at) DESC
        OFFSET most - 1
    ));
END
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

-- Whether user `actor` is still signed in by an access token: its session is live, or, for a token without a session,
-- it was issued (`issued_at`, Unix time in seconds) after all sessions of the user were last ended. For statements that
-- come so long after the request was authenticated that the answer may have changed. A function for its new snapshot:
-- asked after a statement has got the lock of a row, it sees what was committed while the statement waited.
CREATE FUNCTION is_signed_in(actor uuid, session uuid, issued_at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM users u LEFT JOIN sessions s ON s.id = session AND s.user_id = u.id AND s.epoch = u.session_epoch
        WHERE u.id = actor AND u.is_active AND NOT u.is_deleted
          AND CASE WHEN session IS NOT NULL THEN s.ended_at IS NULL AND s.expires_at > now()
                   ELSE u.sessions_ended_at IS NULL OR issued_at > floor(extract(epoch FROM u.sessions_ended_at))
              END
    );
END
$$;

-- The networks from which each account has signed in lately. After too many failed sign-ins with a name, further ones
-- are refused except from these networks, so a stranger who causes the failures cannot lock the owner out.
CREATE TABLE sign_in_networks (
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    network cidr NOT NULL,
    last_sign_in_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network)
);

CREATE INDEX sign_in_networks_last_sign_in_at ON sign_in_networks (last_sign_in_at);

-- The network of a client: the /24 of an IPv4 address, the /48 of an IPv6 address. When a person's address changes, for
-- instance because a router reconnects, it often stays in this network, and an attacker's address is rarely in it.
CREATE FUNCTION sign_in_network(address inet) RETURNS cidr LANGUAGE sql IMMUTABLE AS $$
    SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))
$$;

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

-- What goes with a change of an account, in its own row. A trigger, so that no statement can forget it.
CREATE FUNCTION complete_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A link for a password reset is good for one version of the credentials. A change of is_active raises it too, so a
    -- link from before a deactivation stays dead when the account is active again.
    IF NEW.is_active <> OLD.is_active AND NEW.credentials_version = OLD.credentials_version THEN
        NEW.credentials_version := OLD.credentials_version + 1;
    END IF;
    -- Deleting an account erases all personal data in its row.
    IF NEW.is_deleted AND NOT OLD.is_deleted THEN
        NEW.username := NULL;
        NEW.email := NULL;
        NEW.email_key := NULL;
        NEW.name := NULL;
        NEW.password_hash := NULL;
        NEW.permissions := '{}';
    END IF;
    -- Without its secret, nothing is left of a second factor.
    IF OLD.second_factor_sealed IS NOT NULL AND (NEW.second_factor_sealed IS NULL OR NEW.is_deleted) THEN
        NEW.second_factor_sealed := NULL;
        NEW.second_factor_pending_until := NULL;
        NEW.second_factor_at := NULL;
        NEW.second_factor_step := NULL;
        NEW.recovery_codes := NULL;
        NEW.wrong_codes := 0;
        NEW.wrong_code_times := NULL;
        NEW.wrong_code_networks := NULL;
    END IF;
    -- Another password begins a new count of wrong codes: nobody who knew the one before can send any more of them. A
    -- hash that is only renewed leaves the version of the credentials as it is.
    IF OLD.password_hash IS DISTINCT FROM NEW.password_hash AND OLD.credentials_version <> NEW.credentials_version THEN
        NEW.wrong_codes := 0;
    END IF;
    RETURN NEW;
END
$$;

-- Not for an upload, which changes none of these columns.
CREATE TRIGGER users_complete_change BEFORE UPDATE ON users FOR EACH ROW
WHEN (NEW.is_active <> OLD.is_active OR NEW.is_deleted <> OLD.is_deleted
      OR NEW.second_factor_sealed IS DISTINCT FROM OLD.second_factor_sealed
      OR NEW.password_hash IS DISTINCT FROM OLD.password_hash)
EXECUTE FUNCTION complete_change();

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
-- meanwhile are counted here, and mail/insert_counted_resets.sql writes an event for them when the two minutes are over.
-- There is a row for each account that had such an event within two minutes.
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

-- Personal access tokens, which users make for scripts. Only their hashes are stored, so nobody who reads the table can
-- use them.
CREATE TABLE personal_tokens (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the whole token.
    token_hash bytea NOT NULL CONSTRAINT personal_tokens_token_hash_key UNIQUE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- The time of the last use, rounded down to the hour.
    last_used_at timestamptz,
    -- What it is accepted for: everything, GET and HEAD, or adding files.
    scope text NOT NULL CONSTRAINT personal_tokens_scope_check CHECK (scope IN ('all', 'read', 'upload'))
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

-- Each change of a file gets its file the next of these numbers, while the transaction holds the lock of the owner's
-- row, until it is committed. So of two changes of one owner's files the one with the greater number is committed
-- later, and whoever has seen a number has missed none before it. The numbers of other owners lie between them.
CREATE SEQUENCE change_numbers;

-- What a file takes of the disk, as far as young accounts share it: also an empty one takes an inode and rows.
CREATE FUNCTION disk_usage(file_size bigint, description text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(file_size, 16384) + coalesce(octet_length(description), 0)
$$;

-- Files: the contents lie in the data directory, or in a store, under file_path, which is 'files/' and the id.
CREATE TABLE files (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    filename varchar(255) COLLATE "C" NOT NULL,
    original_filename varchar(255) NOT NULL,
    content_type varchar(100) NOT NULL,
    file_size bigint NOT NULL CONSTRAINT files_file_size_check CHECK (file_size >= 0),
    file_path varchar(500) NOT NULL,
    file_hash varchar(64) NOT NULL,
    description text,
    upload_date timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    is_public boolean NOT NULL DEFAULT false,
    version integer NOT NULL DEFAULT 1,
    -- The number of the latest change: 0 if that was before numbers were given.
    change_number bigint NOT NULL DEFAULT nextval('change_numbers'),
    -- Whether all of the content is UTF-8 without NUL.
    is_utf8 boolean NOT NULL DEFAULT false,
    disk_usage bigint NOT NULL GENERATED ALWAYS AS (disk_usage(file_size, description)) STORED
);

-- The version of a file's record, by which clients say which one they have seen (`ETag`). A trigger raises it, so that
-- no statement can forget it, and gives the change its number. The time of a change is no version: it is that of the
-- transaction's beginning, so two changes may have the same, and a later one an earlier time.
CREATE FUNCTION raise_file_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.change_number := nextval('change_numbers');
    RETURN NEW;
END
$$;

CREATE TRIGGER files_version BEFORE UPDATE ON files FOR EACH ROW EXECUTE FUNCTION raise_file_version();

-- An index for each order of a user's files, and how many there are of a type. Those of one size are in the order of
-- their ids in both directions; an index has only one of the two, the largest files first, which is asked for most.
CREATE INDEX files_newest ON files (user_id, upload_date DESC, id);
CREATE INDEX files_name ON files (user_id, folded(filename), id);
CREATE INDEX files_size ON files (user_id, file_size DESC, id);
CREATE INDEX files_type ON files (user_id, content_type);
CREATE INDEX files_changed ON files (user_id, change_number, id);

-- Files that their owners have deleted and may restore for some days. The contents stay where they are.
CREATE TABLE deleted_files (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    filename varchar(255) COLLATE "C" NOT NULL,
    original_filename varchar(255) NOT NULL,
    content_type varchar(100) NOT NULL,
    file_size bigint NOT NULL,
    file_hash varchar(64) NOT NULL,
    description text,
    upload_date timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    is_public boolean NOT NULL,
    version integer NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Whether the file was younger than a day when it was deleted.
    was_young boolean NOT NULL,
    is_utf8 boolean NOT NULL DEFAULT false,
    disk_usage bigint NOT NULL GENERATED ALWAYS AS (disk_usage(file_size, description)) STORED
);

-- The order in which those of a user make room for others, and the order in which the time of all is over.
CREATE INDEX deleted_files_room ON deleted_files (user_id, was_young DESC, deleted_at, id);
CREATE INDEX deleted_files_age ON deleted_files (deleted_at);

-- What each content is to be, also that of a deleted file.
CREATE VIEW recorded_contents AS
SELECT id, user_id, file_size, file_hash FROM files
UNION ALL
SELECT id, user_id, file_size, file_hash FROM deleted_files;

-- Contents that no record names and that are to be removed: those of files that are deleted for good at once, whose
-- time is -infinity, and in a store those whose records were lost some days after a sweep has first seen them so. The
-- sweep passes them over.
CREATE TABLE deleted_contents (
    id uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    -- Of the file that it was. Of a content whose record was lost nothing is known, and it counts as nothing.
    user_id uuid,
    file_size bigint NOT NULL DEFAULT 0,
    disk_usage bigint NOT NULL
               GENERATED ALWAYS AS (CASE WHEN user_id IS NULL THEN 0 ELSE disk_usage(file_size, NULL) END) STORED
);

CREATE INDEX deleted_contents_age ON deleted_contents (deleted_at);

-- What is on the disk: the bytes that the quota of the service bounds, which are none of a deleted file that can be
-- restored, and what all of it takes.
CREATE VIEW stored_contents AS
SELECT user_id, file_size AS used, disk_usage FROM files
UNION ALL
SELECT user_id, 0, disk_usage FROM deleted_files
UNION ALL
SELECT user_id, file_size, disk_usage FROM deleted_contents;

-- Deletions of files, also of those that cannot be restored, so that clients that follow changes learn of them.
CREATE TABLE file_deletions (
    file_id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    change_number bigint NOT NULL DEFAULT nextval('change_numbers'),
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX file_deletions_changed ON file_deletions (user_id, change_number);
CREATE INDEX file_deletions_age ON file_deletions (deleted_at);

-- What all files take together is a sharded counter: the sum over these rows. With one row, each upload and deletion
-- waited until the commit of the one before was on the disk. A single shard means nothing, and may be negative, because
-- a file may be subtracted from another shard than it was added to.
CREATE TABLE storage_shards (
    shard smallint PRIMARY KEY,
    -- What the quota of the service bounds: the bytes of files, and of contents that wait for their removal.
    used bigint NOT NULL,
    -- The sum of the column of this name of all users.
    disk_usage bigint NOT NULL DEFAULT 0
);

INSERT INTO storage_shards (shard, used) SELECT shard, 0 FROM generate_series(0, 63) shard;

-- Adds to a shard. One that another transaction has locked is passed over, so this waits for others only if all are.
CREATE FUNCTION add_to_storage(bytes bigint, usage bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE storage_shards SET used = used + bytes, disk_usage = disk_usage + usage
    WHERE shard = coalesce((SELECT shard FROM storage_shards LIMIT 1 FOR UPDATE SKIP LOCKED),
                           (pg_backend_pid() % 64)::smallint);
END
$$;

-- The totals of users and of the service are computed from the rows of three tables (files, deleted_files and
-- deleted_contents), once a change instead of once a look: every authenticated request reads a user's, every upload
-- compares both with the quotas. The user's row is locked before the shard, and nothing after it. Deletions are noted
-- here too, so that no statement can forget it, but not those of accounts that are deleted themselves.
CREATE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    present integer := CASE TG_TABLE_NAME WHEN 'files' THEN sign ELSE 0 END;
    deleted integer := CASE TG_TABLE_NAME WHEN 'deleted_files' THEN sign ELSE 0 END;
    total record;
BEGIN
    SELECT sum(file_size)::bigint AS bytes, sum(disk_usage)::bigint AS usage INTO total FROM changed;
    IF total.bytes IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE users u
    SET total_uploads = total_uploads + present * c.files, total_storage_used = total_storage_used + present * c.bytes,
        deleted_files = deleted_files + deleted * c.files, deleted_bytes = deleted_bytes + deleted * c.bytes,
        disk_usage = disk_usage + sign * c.usage,
        remembered_deletions = remembered_deletions + CASE WHEN present < 0 AND NOT is_deleted THEN c.files ELSE 0 END
    FROM (SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes, sum(disk_usage)::bigint AS usage
          FROM changed GROUP BY user_id) c
    WHERE u.id = c.user_id;
    IF present < 0 THEN
        INSERT INTO file_deletions (file_id, user_id)
        SELECT changed.id, user_id FROM changed JOIN users owner ON owner.id = user_id AND NOT owner.is_deleted
        ON CONFLICT (file_id) DO UPDATE SET change_number = excluded.change_number, deleted_at = excluded.deleted_at;
    END IF;
    PERFORM add_to_storage(CASE deleted WHEN 0 THEN sign * total.bytes ELSE 0 END, sign * total.usage);
    RETURN NULL;
END
$$;

CREATE TRIGGER files_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER files_removed AFTER DELETE ON files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_files_added AFTER INSERT ON deleted_files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_files_removed AFTER DELETE ON deleted_files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_contents_added AFTER INSERT ON deleted_contents REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_contents_removed AFTER DELETE ON deleted_contents REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();

-- Another description takes another part of the disk.
CREATE FUNCTION count_description() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE users SET disk_usage = disk_usage + NEW.disk_usage - OLD.disk_usage WHERE id = NEW.user_id;
    PERFORM add_to_storage(0, NEW.disk_usage - OLD.disk_usage);
    RETURN NULL;
END
$$;

CREATE TRIGGER files_description AFTER UPDATE ON files FOR EACH ROW WHEN (OLD.disk_usage <> NEW.disk_usage)
EXECUTE FUNCTION count_description();

-- Whether a file of `size` bytes fits into the `quota` of the service. The caller has locked the user's row, and adds
-- the file in the same transaction.
-- While a quarter of the quota is free, nobody needs to see what the others are about to add, because all of it fits
-- into that quarter: half of it is for small files, of which each connection adds one at a time, and half for a single
-- large one. They hold the lock of the quota shared. Nearer to the quota, or with a file that is larger still, an
-- upload holds it alone.
CREATE FUNCTION has_storage_for(size bigint, quota bigint) RETURNS boolean LANGUAGE plpgsql STRICT AS $$
DECLARE
    max_large bigint := quota / 8;
    max_small bigint := max_large / current_setting('max_connections')::bigint;
BEGIN
    IF size <= max_large THEN
        BEGIN
            IF size > max_small THEN
                PERFORM pg_advisory_xact_lock(hashtext('cloakroom: large file'));
            END IF;
            PERFORM pg_advisory_xact_lock_shared(hashtext('cloakroom: quota of the service'));
            IF (SELECT sum(used) FROM storage_shards) <= quota - 2 * max_large THEN
                RETURN true;
            END IF;
            -- Leaving the block with an exception releases the locks. If two held the lock shared while they waited
            -- for it alone, they would deadlock.
            RAISE 'near the quota';
        EXCEPTION WHEN raise_exception THEN
        END;
    END IF;
    -- This lock is released after the changes of its holder have become visible, and each statement of a function takes
    -- a new snapshot, so the sum has the files of all who held it before.
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: quota of the service'));
    RETURN (SELECT sum(used) + size <= quota FROM storage_shards);
END
$$;

-- What all young accounts that registered themselves use of the disk, or more, if that and `more` are within `quota`:
-- they are counted only if all that is used exceeds it. Deleted accounts count until their contents are gone. Uploads
-- that run at once do not see each other here, so they may exceed the quota.
-- What an account uses is in no index, because otherwise each upload would have to change it.
CREATE FUNCTION young_disk_usage(more bigint, quota bigint) RETURNS bigint LANGUAGE plpgsql STRICT AS $$
DECLARE
    usage bigint := (SELECT sum(disk_usage) FROM storage_shards);
BEGIN
    IF usage + more > quota THEN
        usage := (SELECT coalesce(sum(disk_usage), 0) FROM users
                  WHERE created_at > now() - interval '7 days' AND is_self_registered);
    END IF;
    RETURN usage;
END
$$;

-- Forgets the oldest deletions of a user's files, at most 1,000, so that there are fewer than `most`. The caller has
-- locked the user's row, as the callers of the next two functions have. These are functions for their new snapshots.
CREATE FUNCTION forget_deletions(of_user uuid, most bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    too_many bigint := (SELECT least(remembered_deletions + 1 - most, 1000) FROM users WHERE id = of_user);
BEGIN
    IF too_many > 0 THEN
        WITH forgotten AS (
            DELETE FROM file_deletions
            WHERE file_id IN (SELECT file_id FROM file_deletions WHERE user_id = of_user
                              ORDER BY change_number LIMIT too_many)
            RETURNING change_number
        )
        UPDATE users
        SET remembered_deletions = remembered_deletions - (SELECT count(*) FROM forgotten),
            forgotten_change = greatest(forgotten_change, (SELECT max(change_number) FROM forgotten))
        WHERE id = of_user;
    END IF;
END
$$;

-- Makes room for a deleted file of `size` bytes, so that those of the user are at most `most_files` and `most_bytes`
-- together. First those go that were younger than a day when they were deleted, then the others; of both the longest
-- ago deleted first. So what somebody uploads only to delete it does not push out what was there before. At most
-- `at_most` go, so that deleting takes no longer the more there are; removals/make_room_of_user takes the others.
-- Returns whether the new one itself may stay.
CREATE FUNCTION make_room_for_deleted_file(of_user uuid, size bigint, is_young boolean, most_bytes bigint,
                                           most_files bigint, at_most bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    old record;
    purged uuid[] := '{}';
    stays boolean := true;
    -- By how much there are too many.
    bytes bigint := (SELECT deleted_bytes + size - most_bytes FROM users WHERE id = of_user);
    files bigint := (SELECT deleted_files + 1 - most_files FROM users WHERE id = of_user);
BEGIN
    IF bytes <= 0 AND files <= 0 THEN
        RETURN true;
    END IF;
    FOR old IN SELECT id, file_size, was_young FROM deleted_files WHERE user_id = of_user
               ORDER BY was_young DESC, deleted_at, id LIMIT at_most LOOP
        EXIT WHEN bytes <= 0 AND files <= 0;
        IF is_young AND stays AND NOT old.was_young THEN
            stays := false;
            bytes := bytes - size;
            files := files - 1;
            EXIT WHEN bytes <= 0 AND files <= 0;
        END IF;
        purged := purged || old.id;
        bytes := bytes - old.file_size;
        files := files - 1;
    END LOOP;
    WITH gone AS (DELETE FROM deleted_files WHERE id = ANY (purged) RETURNING id, user_id, file_size)
    INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
    SELECT id, '-infinity', user_id, file_size FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at;
    RETURN stays AND (bytes <= 0 AND files <= 0 OR cardinality(purged) = at_most);
END
$$;

-- Restores files of a user, at most 10,000: `only_file` or, if that is null, those deleted at `since` or later, the
-- latest deleted first, and each that still fits into the quotas of bytes and files of the user, and of bytes of the
-- service; in what young accounts share, deleted files count as others do. Returns how many it restored, and how many
-- of those that it was asked for remain deleted.
CREATE FUNCTION restore_files(of_user uuid, only_file uuid, since timestamptz, most_bytes bigint, most_files bigint,
                              most_of_service bigint, OUT restored bigint, OUT remaining bigint)
LANGUAGE plpgsql AS $$
DECLARE
    old record;
    fitting uuid[];
    bytes bigint;
    room bigint;
    max_files bigint;
    is_exact boolean := false;
BEGIN
    SELECT most_bytes - total_storage_used, least(most_files - total_uploads, 10000)
    INTO room, max_files FROM users WHERE id = of_user;
    LOOP
        fitting := '{}';
        bytes := 0;
        remaining := 0;
        FOR old IN SELECT id, file_size FROM deleted_files
                   WHERE user_id = of_user
                     AND CASE WHEN only_file IS NULL THEN deleted_at >= since ELSE id = only_file END
                   ORDER BY deleted_at DESC, id LOOP
            IF cardinality(fitting) < max_files AND bytes + old.file_size <= room THEN
                fitting := fitting || old.id;
                bytes := bytes + old.file_size;
            ELSE
                remaining := remaining + 1;
            END IF;
        END LOOP;
        EXIT WHEN is_exact OR bytes = 0 OR has_storage_for(bytes, most_of_service);
        -- Near the quota of the service its lock is held now, so this is exactly what is left.
        is_exact := true;
        room := least(room, most_of_service - (SELECT sum(used) FROM storage_shards));
    END LOOP;
    restored := cardinality(fitting);
    WITH back AS (
        DELETE FROM deleted_files WHERE id = ANY (fitting) RETURNING *
    )
    INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description, upload_date, updated_at, is_public, version, is_utf8)
    SELECT id, user_id, filename, original_filename, content_type, file_size, 'files/' || id, file_hash, description,
           upload_date, updated_at, is_public, version, is_utf8
    FROM back;
    WITH recalled AS (
        DELETE FROM file_deletions WHERE file_id = ANY (fitting) RETURNING file_id
    )
    UPDATE users SET remembered_deletions = remembered_deletions - (SELECT count(*) FROM recalled) WHERE id = of_user;
END
$$;

-- The uploads of the last day that had an Idempotency-Key, so that one with the same key is answered as the first was.
-- The row is written in the statement that records the file, and outlives it. It holds none of what the client sent but
-- the key, because another upload must be the same as the first to be answered: a hash says whether it is.
CREATE TABLE idempotency_keys (
    user_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    file_id uuid NOT NULL,
    -- SHA-256 of the file's hash, its type, its name and its description.
    request_hash bytea NOT NULL,
    file_size bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- How many keys of a user are not over. The caller has locked the user's row, and this is a function for its new
-- snapshot, so parallel uploads do not exceed the limit.
CREATE FUNCTION count_idempotency_keys(of_user uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM idempotency_keys
            WHERE user_id = of_user AND created_at > now() - interval '1 day');
END
$$;

-- Locks the rows of these users that an upload changes, if neither is locked, and returns whose they are. A function,
-- so that a statement can call it only where it must not wait for other users.
CREATE FUNCTION unlocked_owners(owners uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT id FROM users JOIN own_changes ON user_id = id WHERE id = ANY (owners)
                 FOR NO KEY UPDATE SKIP LOCKED);
END
$$;

-- Links by which anyone may download a file for a while. Only the hashes of their tokens are stored, so nobody who
-- reads the table can use them.
CREATE TABLE file_links (
    id uuid PRIMARY KEY,
    file_id uuid NOT NULL REFERENCES files ON DELETE CASCADE,
    -- The owner of the file.
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the token.
    token_hash bytea NOT NULL CONSTRAINT file_links_token_hash_key UNIQUE,
    -- Whether browsers show the file, if its type is one that they show safely, in place of saving it.
    inline boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE INDEX file_links_file ON file_links (file_id);
CREATE INDEX file_links_user ON file_links (user_id, expires_at);
CREATE INDEX file_links_expiry ON file_links (expires_at);

-- Whether a file may have another link: it has fewer than `most_of_file` live ones, and its owner fewer than
-- `most_of_user`. A function, because its statement takes a new snapshot: it counts the links that were committed while
-- the caller waited for the lock of the owner's row.
CREATE FUNCTION has_room_for_file_link(of_user uuid, of_file uuid, most_of_user bigint, most_of_file bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) < most_of_user AND count(*) FILTER (WHERE file_id = of_file) < most_of_file
            FROM file_links WHERE user_id = of_user AND expires_at > now());
END
$$;

-- What ends with the password, with the activity and with the account itself; the links of an inactive account only
-- wait. Deleted accounts leave nothing behind that a client has sent, nor the networks of its owner. A trigger does
-- this, so that no statement can forget it; and because its statements take a new snapshot, they also delete what was
-- committed while the change waited for the user's row.
CREATE FUNCTION end_with_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM personal_tokens WHERE user_id = NEW.id;
    IF NEW.is_deleted OR OLD.password_hash <> NEW.password_hash THEN
        DELETE FROM file_links WHERE user_id = NEW.id;
    END IF;
    IF NEW.is_deleted THEN
        DELETE FROM sign_in_networks WHERE user_id = NEW.id;
        DELETE FROM idempotency_keys WHERE user_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;

-- The password has changed only if both its hash and the version of the credentials differ. A login that renews a hash
-- of outdated cost changes only the hash, and a new e-mail address only the version.
CREATE TRIGGER users_end_with_account AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.is_active AND NOT NEW.is_active
      OR NOT OLD.is_deleted AND NEW.is_deleted
      OR OLD.password_hash IS DISTINCT FROM NEW.password_hash
         AND OLD.credentials_version <> NEW.credentials_version)
EXECUTE FUNCTION end_with_account();

-- What lists of accounts search, filter and sort by: a narrow copy of those columns, with folded texts in NFC, of the
-- accounts that lists show. A search for what many accounts have must look at all of them, and takes a tenth of the
-- time that it takes in users: rows are half as long, nothing is converted, and an index alone answers, because these
-- rows seldom change, while each sign-in and upload changes a row of users. And PostgreSQL has statistics for these
-- columns, which it does not use for expressions in partial indexes, so it knows whether many accounts match.
CREATE VIEW listable_users AS
SELECT id AS user_id, created_at, is_active, role, folded(username) AS username, folded(normalize(email)) AS email,
       email_key, folded(name) AS name
FROM users
WHERE NOT is_deleted AND NOT is_development_admin;

CREATE TABLE listed_users (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    created_at timestamptz,
    is_active boolean,
    role text,
    username text COLLATE "C",
    email text COLLATE "C",
    email_key text COLLATE "C",
    name text COLLATE "C"
);

-- An index for each order. Of two that were created at one time the one with the smaller id comes first in both orders,
-- and accounts without a name come last in both.
CREATE INDEX listed_users_oldest ON listed_users (created_at, user_id);
CREATE INDEX listed_users_created ON listed_users (created_at DESC, user_id);
CREATE INDEX listed_users_name ON listed_users (name, user_id);
CREATE INDEX listed_users_name_desc ON listed_users (name DESC NULLS LAST, user_id);
CREATE INDEX listed_users_email ON listed_users (email_key, user_id);
CREATE INDEX listed_users_admins ON listed_users (created_at, user_id) WHERE role = 'admin';
CREATE INDEX listed_users_inactive ON listed_users (created_at, user_id) WHERE NOT is_active;

-- For searches of a part of a text. The extension comes with PostgreSQL, but the database user may not be allowed to
-- create it. Without the index, such searches read all rows.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX listed_users_search ON listed_users
    USING gin (email gin_trgm_ops, name gin_trgm_ops, username gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file OR undefined_object THEN
    RAISE WARNING 'no extension pg_trgm: searching users will read all of them (%)', SQLERRM;
END
$$;

-- Triggers keep the copy, so that no statement can forget it.
CREATE FUNCTION list_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO listed_users SELECT listable.* FROM added JOIN listable_users listable ON listable.user_id = added.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION list_user_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM listed_users WHERE user_id = NEW.id;
    INSERT INTO listed_users SELECT * FROM listable_users WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_list AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION list_users();

-- Not for a sign-in or an upload, which change other columns.
CREATE TRIGGER users_list_anew
AFTER UPDATE OF created_at, is_active, role, username, email, name, is_deleted ON users FOR EACH ROW
WHEN ((NEW.created_at, NEW.is_active, NEW.role, NEW.username, NEW.email, NEW.name, NEW.is_deleted)
      IS DISTINCT FROM
      (OLD.created_at, OLD.is_active, OLD.role, OLD.username, OLD.email, OLD.name, OLD.is_deleted))
EXECUTE FUNCTION list_user_anew();

-- How many accounts and files there are, so that nobody counts a million rows: the sum of these rows, by the day (UTC)
-- of creation or upload. Triggers only add rows, with negative numbers for what is gone, so that no transaction waits
-- for another one's, and db/stats/fold.sql replaces the rows of a day, and the days of more than a year ago by their
-- months. A statement sees the rows of the transactions whose changes it sees, so the sums are exact.
CREATE TABLE account_totals (
    -- A day, or the first day of a month that was folded.
    day date NOT NULL,
    role text NOT NULL,
    is_active boolean NOT NULL,
    accounts bigint NOT NULL
);

-- All files that have a record, also those of deleted users, whose records the program removes later.
CREATE TABLE file_totals (
    day date NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL
);

-- Accounts are counted when they enter or leave the lists, and when a change of theirs makes them do both.
CREATE FUNCTION total_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_totals
    SELECT (created_at AT TIME ZONE 'UTC')::date, role, is_active,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*)
    FROM changed GROUP BY 1, 2, 3;
    RETURN NULL;
END
$$;

CREATE TRIGGER listed_users_added AFTER INSERT ON listed_users REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_accounts();
CREATE TRIGGER listed_users_removed AFTER DELETE ON listed_users REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_accounts();

-- A file keeps its date and its size for as long as it has a record.
CREATE FUNCTION total_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO file_totals
    SELECT (upload_date AT TIME ZONE 'UTC')::date,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*),
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(file_size)
    FROM changed GROUP BY 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER files_total_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_files();
CREATE TRIGGER files_total_removed AFTER DELETE ON files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_files();

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
                        'files_lost')),
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
    -- The order of sending: resets first, because somebody waits for them, and nobody waits for a notice; registrations
    -- last, because anybody causes as many as they like.
    priority smallint GENERATED ALWAYS AS (
        CASE WHEN kind = 'password_reset' THEN 0 WHEN user_id IS NOT NULL THEN 1 ELSE 2 END
    ) STORED,
    CONSTRAINT outbox_user_check CHECK (user_id IS NOT NULL OR kind = 'email_confirmation')
);

CREATE INDEX outbox_due ON outbox (priority, due_at, id) WHERE failed_at IS NULL;
CREATE INDEX outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX outbox_waiting ON outbox (priority, due_at) WHERE waits_for_server;
-- For each account at most one message about a password reset waits to be sent, however many are requested.
CREATE UNIQUE INDEX outbox_password_reset_key ON outbox (user_id) WHERE kind = 'password_reset' AND failed_at IS NULL;

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
    IF (SELECT count(*) >= 10000 FROM outbox WHERE failed_at IS NULL AND priority = 2) THEN
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
CREATE FUNCTION limit_mail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account users;
BEGIN
    IF NEW.kind = 'email_confirmation' THEN
        -- The key of a name that is not ASCII may be another mailbox. The mail goes to the one that it confirms.
        IF octet_length(substring(NEW.address FROM '(.*)@')) <> length(substring(NEW.address FROM '(.*)@')) THEN
            NEW.address := NEW.email_key;
        END IF;
        RETURN CASE WHEN NEW.user_id IS NULL OR mail_wait(mailbox(NEW.email_key), 12, NEW.network) IS NULL THEN NEW END;
    END IF;
    IF NEW.kind NOT IN ('password_reset', 'email_change_requested') AND mail_wait(
        NEW.kind || ' ' || NEW.user_id, CASE NEW.kind WHEN 'password_changed' THEN 10 ELSE 5 END
    ) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    SELECT * INTO account FROM users WHERE id = NEW.user_id;
    -- It goes where the account is now, or the account could move to another mailbox before the message is sent.
    NEW.address := coalesce(NEW.address, account.email);
    NEW.email_key := coalesce(NEW.email_key, account.email_key);
    RETURN CASE WHEN (account.is_settled OR account.created_at <= now() - interval '1 day')
                     AND coalesce(account.email_changed_at <= now() - interval '1 day', true)
                     OR mail_wait(mailbox(coalesce(NEW.email_key, '')), 12, coalesce(NEW.network, (
                         SELECT network FROM sign_in_networks WHERE user_id = NEW.user_id
                         ORDER BY last_sign_in_at DESC LIMIT 1
                     ))) IS NULL THEN NEW END;
END
$$;

CREATE TRIGGER outbox_limits BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION limit_mail();

-- Tells the owner of an account that its password, its e-mail address or its second factor was changed. It is a
-- trigger, so that the notice is stored in the transaction of the change, and no query can forget it. A hash that is
-- only renewed at a login leaves credentials_version as it is. Notices are queued in the order of their mailboxes, as
-- other statements do, so that they do not deadlock.
CREATE FUNCTION queue_notices() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_new_version boolean := NEW.credentials_version <> OLD.credentials_version;
BEGIN
    INSERT INTO outbox (kind, user_id, address, email_key)
    SELECT notice.kind, NEW.id, notice.address, notice.email_key
    FROM (VALUES
        ('password_changed', NEW.email, NEW.email_key, is_new_version AND NEW.password_hash <> OLD.password_hash),
        ('email_changed', OLD.email, OLD.email_key, is_new_version AND NEW.email_key <> OLD.email_key),
        ('second_factor_enabled', NEW.email, NEW.email_key,
         OLD.second_factor_at IS NULL AND NEW.second_factor_at IS NOT NULL),
        ('second_factor_disabled', NEW.email, NEW.email_key,
         OLD.second_factor_at IS NOT NULL AND NEW.second_factor_at IS NULL),
        ('recovery_code_used', NEW.email, NEW.email_key,
         cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)),
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

-- The audit log: who did what to whom, from where, and how it ended. The OpenAPI document says what each action means,
-- under `GET /api/v1/admin/audit`.
-- Both lists are types, so that a query can go through all kinds of events, and an index entry needs four bytes each.
CREATE TYPE audit_action AS ENUM (
    'auth.register', 'auth.login', 'auth.logout', 'auth.refresh_reuse', 'auth.session_end', 'auth.token_create',
    'auth.token_delete', 'password.change', 'password.reset_request', 'password.reset', 'email.change',
    'email.change_request', 'user.create', 'user.update', 'user.delete', 'users.export',
    'file.upload', 'file.update', 'file.delete', 'file.restore', 'file.purge', 'file.link_create', 'file.link_delete',
    'admin.create', 'access.denied', 'second_factor.enable', 'second_factor.disable', 'second_factor.recovery'
);
CREATE TYPE audit_outcome AS ENUM ('success', 'failure');

-- No column refers to another table: an event outlives what it is about.
CREATE TABLE audit_events (
    -- The time of the change itself and not of its transaction, so that events about one row are in the order in which
    -- its lock was given.
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    action audit_action NOT NULL,
    outcome audit_outcome NOT NULL DEFAULT 'success',
    -- The account that acted. Null if nobody was signed in, and on the command line.
    actor_id uuid,
    -- What it acted on: 'user', 'file', 'session', 'token' or 'link', and its id.
    subject_type text,
    subject_id uuid,
    -- The client's address and the value of X-Request-ID. Null on the command line.
    address inet,
    request_id uuid,
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (at, id),
    CONSTRAINT audit_events_subject_check CHECK ((subject_type IS NULL) = (subject_id IS NULL))
);

-- The names of those of these columns that differ between two states of a row, for the event of a change.
CREATE FUNCTION changed_columns(before jsonb, after jsonb, columns text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT name FROM unnest(columns) name WHERE before -> name <> after -> name)
$$;

-- A page reads the newest events of each kind from one of these, see audit/page.sql. Both filters by id, together,
-- are answered by the last one alone.
CREATE INDEX audit_events_kind ON audit_events (action, outcome, at, id);
CREATE INDEX audit_events_actor ON audit_events (actor_id, action, outcome, at, id) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_subject ON audit_events (subject_id, action, outcome, at, id, actor_id)
WHERE subject_id IS NOT NULL;
-- The events that stand for several, which are few, for db/stats/daily.sql.
CREATE INDEX audit_events_folded ON audit_events (action, at) WHERE details ? 'count';
-- Sign-ins that lacked only the code of a second factor, which are no refusals: db/stats/daily.sql subtracts them from the
-- failed ones, which it counts in an index alone.
CREATE INDEX audit_events_missing_code ON audit_events (at) WHERE details ->> 'reason' = 'second_factor_required';

-- Events stay as they are. This protects them from mistakes, not from the owner of the database. Only the query
-- audit/sweep.sql, which sets this setting for its own transaction, may delete some.
CREATE FUNCTION keep_audit_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are neither changed nor deleted'
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_events_are_kept';
END
$$;

CREATE TRIGGER audit_events_no_change BEFORE UPDATE OR TRUNCATE ON audit_events
FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_events();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events FOR EACH ROW
WHEN (current_setting('cloakroom.removes_old_audit_events', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION keep_audit_events();

-- Anybody may register and change what belongs to them as often as the rate limits let them, and events are kept for a
-- year. So that this cannot fill the disk, a user's changes of their own profile, files, personal access tokens and
-- sessions are events of their own only up to a hundred in an hour and a thousand on a day, both in UTC. The others are
-- counted, and audit/insert_skipped.sql writes one event for each action and hour.

-- How many of these events each user has caused. Rows that are a day old limit nothing and are removed. There is no
-- reference to users, which would only cost a look-up.
CREATE TABLE own_changes (
    user_id uuid PRIMARY KEY,
    -- The hour of the newest event, how many there are in it, and how many on its day.
    hour timestamptz NOT NULL,
    in_hour integer NOT NULL,
    on_day integer NOT NULL
);

-- How many changes of each user, hour and action have no event of their own.
CREATE TABLE skipped_changes (
    hour timestamptz NOT NULL,
    user_id uuid NOT NULL,
    action audit_action NOT NULL,
    changes bigint NOT NULL,
    PRIMARY KEY (hour, user_id, action)
);

-- Counts a change, and lets its event pass while there are few. The condition of the update decides that: unlike a
-- SELECT it sees the row as the transaction before it left it, so the limits are exact.
CREATE FUNCTION limit_own_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_hour timestamptz := date_trunc('hour', NEW.at, 'UTC');
BEGIN
    INSERT INTO own_changes AS c (user_id, hour, in_hour, on_day) VALUES (NEW.actor_id, this_hour, 1, 1)
    ON CONFLICT (user_id) DO UPDATE
    SET hour = greatest(c.hour, this_hour),
        in_hour = CASE WHEN c.hour < this_hour THEN 1 ELSE c.in_hour + 1 END,
        on_day = CASE WHEN c.hour < date_trunc('day', this_hour, 'UTC') THEN 1 ELSE c.on_day + 1 END
    WHERE (c.hour < this_hour OR c.in_hour < 100)
      AND (c.hour < date_trunc('day', this_hour, 'UTC') OR c.on_day < 1000);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    INSERT INTO skipped_changes AS s (hour, user_id, action, changes)
    VALUES (this_hour, NEW.actor_id, NEW.action, 1)
    ON CONFLICT (hour, user_id, action) DO UPDATE SET changes = s.changes + 1;
    RETURN NULL;
END
$$;

-- A trigger and not the statements of the changes, so that no statement can forget it. It leaves out what
-- administrators do to others, and their changes of their own role and activity, whose events have the new values. The
-- events that stand for several changes of an hour pass; one that tells of a request which restored several files does
-- not.
CREATE TRIGGER audit_events_own_changes BEFORE INSERT ON audit_events FOR EACH ROW
WHEN (NEW.actor_id IS NOT NULL AND (
    NEW.outcome = 'success' AND NOT NEW.details ?| ARRAY['count', 'new']
    AND (NEW.action IN ('file.upload', 'file.update', 'file.delete')
         OR NEW.action IN ('auth.token_create', 'auth.token_delete') AND NEW.subject_type = 'token'
         OR NEW.action IN ('user.update', 'email.change', 'auth.logout') AND NEW.subject_id = NEW.actor_id
         OR NEW.action = 'auth.session_end' AND NEW.subject_type = 'session')
    OR NOT NEW.details ? 'hour'
    AND (NEW.action IN ('file.link_create', 'file.link_delete', 'file.restore', 'file.purge')
         OR NEW.action IN ('second_factor.enable', 'second_factor.disable', 'second_factor.recovery',
                           'email.change_request') AND NEW.outcome = 'success' AND NEW.actor_id = NEW.subject_id)))
EXECUTE FUNCTION limit_own_changes();
