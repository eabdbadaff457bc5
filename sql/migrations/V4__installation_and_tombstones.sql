-- Says which data directory belongs to this database: both hold the same random id, which the program makes at its
-- first start.
CREATE TABLE installation (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_is_only_check CHECK (is_only),
    id uuid NOT NULL
);

-- A deleted account stays as a row without personal data, so the e-mail address may be null. The development admin used
-- to be the account without a password hash. It gets a column of its own, because deleted accounts have no hash either.
ALTER TABLE users ALTER COLUMN email DROP NOT NULL, ADD COLUMN is_development_admin boolean NOT NULL DEFAULT false;
UPDATE users SET is_development_admin = true WHERE password_hash IS NULL;
UPDATE users
SET username = NULL, email = NULL, name = NULL, password_hash = NULL, permissions = '{}',
    credentials_version = credentials_version + 1
WHERE is_deleted AND NOT is_development_admin;
ALTER TABLE users ADD CONSTRAINT users_complete_check
CHECK (is_deleted OR email IS NOT NULL AND (is_development_admin OR password_hash IS NOT NULL));

-- Deleted users whose files still have records, which the program removes in small batches. It is a table and not an
-- index on users, because an index on their totals would have to be updated with every upload.
CREATE TABLE pending_removals (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE
);

INSERT INTO pending_removals (user_id)
SELECT id FROM users WHERE is_deleted AND EXISTS (SELECT FROM files WHERE user_id = users.id);

DROP FUNCTION remove_files(uuid);

-- The indexes of V1 and V3 again. They leave out deleted accounts and the development admin, now by its new column.
DROP INDEX users_username_key, users_email_key, users_created, users_name, users_admins, users_inactive;
DROP INDEX IF EXISTS users_search;
CREATE UNIQUE INDEX users_username_key ON users (lower(username)) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE UNIQUE INDEX users_email_key ON users (lower(email)) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_created ON users (created_at, id) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_name ON users (lower(name), id) WHERE NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_admins ON users (created_at, id)
WHERE role = 'admin' AND NOT is_deleted AND NOT is_development_admin;
CREATE INDEX users_inactive ON users (created_at, id)
WHERE NOT is_active AND NOT is_deleted AND NOT is_development_admin;

-- The database user may not be allowed to create the extension. Without the index, searches for a part of a text read
-- every account.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX users_search ON users
    USING gin (lower(email) gin_trgm_ops, lower(name) gin_trgm_ops, lower(username) gin_trgm_ops)
    WHERE NOT is_deleted AND NOT is_development_admin;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file OR undefined_object THEN
    RAISE WARNING 'no extension pg_trgm: searching users will read all of them (%)', SQLERRM;
END
$$;

-- The rule that one active admin stays (V3), with the new column. The query users/delete_all suspends it for its own
-- transaction, because it deletes all accounts.
CREATE OR REPLACE FUNCTION keep_an_admin() RETURNS trigger LANGUAGE plpgsql AS $$
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

DROP TRIGGER users_last_admin ON users;
CREATE TRIGGER users_last_admin AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.role = 'admin' AND OLD.is_active AND NOT OLD.is_deleted AND NOT OLD.is_development_admin
      AND NOT (NEW.role = 'admin' AND NEW.is_active AND NOT NEW.is_deleted)
      AND current_setting('cloakroom.deletes_all_users', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION keep_an_admin();
