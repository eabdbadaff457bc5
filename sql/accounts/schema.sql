-- Accounts. That of a deleted user stays as a row without personal data, so that ids in the audit log keep their
-- meaning. One row is no person's: the development admin cannot sign in, holds no name against others, and never counts
-- as an admin.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    username text COLLATE "C",
    email text,
    name text,
    -- A PHC string, or `imported:` and a hash that another program made, until its owner signs in. Null for an account
    -- whose owner has not chosen a password yet, and for the development admin.
    password_hash text,
    role text NOT NULL DEFAULT 'user' CONSTRAINT users_role_check CHECK (role IN ('user', 'admin')),
    permissions text[] NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT true,
    is_deleted boolean NOT NULL DEFAULT false,
    -- Changes with the password, the identity, the e-mail address and is_active: a reset token is good for one version.
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
    -- Who the owner is to an OpenID provider: its issuer and the subject of its ID tokens (OpenID Connect Core, 2),
    -- never an address. And the address that the provider has confirmed at that time, if any, by which its owner
    -- knows it.
    identity_issuer text COLLATE "C",
    identity_subject text COLLATE "C",
    identity_email text,
    CONSTRAINT users_identity_check CHECK ((identity_issuer IS NULL) = (identity_subject IS NULL)),
    CONSTRAINT users_email_key_check CHECK ((email IS NULL) = (email_key IS NULL)),
    CONSTRAINT users_complete_check CHECK (is_deleted OR email IS NOT NULL)
);

-- Unique without regard to case, among accounts that are not deleted.
CREATE UNIQUE INDEX users_username_key ON users (folded(username)) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE UNIQUE INDEX users_email_key ON users (email_key) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE UNIQUE INDEX users_identity_key ON users (identity_subject, identity_issuer) WHERE identity_subject IS NOT NULL;
-- The order in which exports read.
CREATE INDEX users_created ON users (created_at, id) WHERE NOT is_deleted AND NOT is_development_admin;
-- The few among the many: admins, accounts that have a secret of a second factor, which are all sealed anew at a start,
-- and those with an imported password hash, which each start looks at.
CREATE INDEX users_admins ON users (created_at, id)
WHERE role = 'admin' AND NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_second_factor ON users (id) WHERE second_factor_sealed IS NOT NULL;
CREATE INDEX users_imported ON users (id) WHERE password_hash LIKE 'imported:%';
-- The young ones among those that registered themselves, also deleted accounts, whose contents may still be there.
CREATE INDEX users_self_registered ON users (created_at) WHERE is_self_registered;
-- Those who have the most deleted bytes.
CREATE INDEX users_deleted_bytes ON users (deleted_bytes) WHERE deleted_bytes > 0;

-- What is shown of an account. Queries that return accounts join it, for instance by `FROM users u, account(u) a`. It
-- is inlined, so it costs nothing, and only the columns that it names are read. An identity of another issuer than that
-- by which people sign in, which each session of the program names if there is one, counts as none.
CREATE FUNCTION account(u users) RETURNS TABLE (
    id uuid, username text, email text, name text, role text, permissions text[], is_active boolean,
    created_at timestamptz, updated_at timestamptz, last_login timestamptz, total_uploads bigint,
    total_storage_used bigint, storage_quota bigint, file_quota bigint, second_factor boolean,
    has_password boolean, has_identity boolean, credentials_version integer
) LANGUAGE sql STABLE AS $$
    SELECT u.id, u.username, u.email, u.name, u.role, u.permissions, u.is_active, u.created_at, u.updated_at,
           u.last_login, u.total_uploads, u.total_storage_used, u.storage_quota, u.file_quota,
           u.second_factor_at IS NOT NULL, u.password_hash IS NOT NULL,
           coalesce(u.identity_issuer = coalesce(nullif(current_setting('cloakroom.issuer', true), ''),
                                                 u.identity_issuer), false),
           u.credentials_version
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
-- before it left. The query accounts/delete_all suspends the rule for its own transaction, because it deletes all
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

-- The accounts that match. $1: LIKE pattern for the e-mail address; $2: for the display name; $3: for the username or
-- the e-mail address; $4: for any of the three; $5: ids; $6: role; $7: whether active; $8: created not before; $9:
-- created not after; a null is no condition. It is inlined, so queries that are planned for their values lose those
-- conditions.
CREATE FUNCTION matching_users(text, text, text, text, uuid[], text, boolean, timestamptz, timestamptz)
RETURNS SETOF listed_users LANGUAGE sql STABLE AS $$
    SELECT * FROM listed_users
    WHERE ($1 IS NULL OR email LIKE folded($1))
      AND ($2 IS NULL OR name LIKE folded($2))
      AND ($3 IS NULL OR username LIKE folded($3) OR email LIKE folded($3))
      AND ($4 IS NULL OR username LIKE folded($4) OR email LIKE folded($4) OR name LIKE folded($4))
      AND ($5 IS NULL OR user_id = ANY ($5))
      AND ($6 IS NULL OR role = $6)
      AND ($7 IS NULL OR is_active = $7)
      AND ($8 IS NULL OR created_at >= $8)
      AND ($9 IS NULL OR created_at <= $9)
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

-- The day under which db/stats/fold.sql keeps the totals of a day: itself, or the first one of its month if that is
-- long enough ago for nobody to ask for its days.
CREATE FUNCTION day_of_totals(day date) RETURNS date LANGUAGE sql STABLE
RETURN CASE WHEN day < date_trunc('month', now() AT TIME ZONE 'UTC' - interval '400 days')::date
            THEN date_trunc('month', day::timestamp)::date ELSE day END;

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
