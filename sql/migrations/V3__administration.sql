-- Lists, exports and statistics look at accounts of people that are not deleted. Their default order,
-- and the order in which exports read:
CREATE INDEX users_created ON users (created_at, id) WHERE NOT is_deleted AND password_hash IS NOT NULL;
-- Order by name; users_email_key serves the order by e-mail address.
CREATE INDEX users_name ON users (lower(name), id) WHERE NOT is_deleted AND password_hash IS NOT NULL;
-- The few among the many: admins, and accounts that are switched off.
CREATE INDEX users_admins ON users (created_at, id)
WHERE role = 'admin' AND NOT is_deleted AND password_hash IS NOT NULL;
CREATE INDEX users_inactive ON users (created_at, id)
WHERE NOT is_active AND NOT is_deleted AND password_hash IS NOT NULL;
-- Uploads of this month.
CREATE INDEX files_upload_date ON files (upload_date);

-- Filters that ask for a part of a text. The extension comes with PostgreSQL, but not everybody may
-- create it; without the index these filters read every account.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX users_search ON users
    USING gin (lower(email) gin_trgm_ops, lower(name) gin_trgm_ops, lower(username) gin_trgm_ops)
    WHERE NOT is_deleted AND password_hash IS NOT NULL;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file OR undefined_object THEN
    RAISE WARNING 'no extension pg_trgm: searching users will read all of them (%)', SQLERRM;
END
$$;

-- Ends the sessions of a user, but not $2. A function, because its statement looks anew: it sees the
-- session of a login that was committed while the caller waited for the user's row.
CREATE FUNCTION end_sessions(of_user uuid, but_not uuid DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET ended_at = now()
    WHERE user_id = of_user AND ended_at IS NULL AND id IS DISTINCT FROM but_not;
END
$$;

-- Removes the records of a user's files and gives their ids. A function for the same reason, with
-- uploads.
CREATE FUNCTION remove_files(of_user uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
BEGIN
    WITH removed AS (DELETE FROM files WHERE user_id = of_user RETURNING id)
    SELECT coalesce(array_agg(id), '{}') INTO ids FROM removed;
    RETURN ids;
END
$$;

-- The last active admin stays. Changes that take one away wait for each other, and each then looks
-- anew at what the one before it left. The development admin has no password and does not count.
CREATE FUNCTION keep_an_admin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: last admin'));
    IF NOT EXISTS (SELECT FROM users
                   WHERE role = 'admin' AND is_active AND NOT is_deleted AND password_hash IS NOT NULL) THEN
        RAISE EXCEPTION 'the last active admin stays'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'users_last_admin';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_last_admin AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.role = 'admin' AND OLD.is_active AND NOT OLD.is_deleted AND OLD.password_hash IS NOT NULL
      AND NOT (NEW.role = 'admin' AND NEW.is_active AND NOT NEW.is_deleted))
EXECUTE FUNCTION keep_an_admin();
