-- What lists of accounts search, filter and sort by: a narrow copy of those columns, with texts in lower case, of the
-- accounts that lists show. A search for what many accounts have must look at all of them, and takes a tenth of the
-- time that it takes in users: rows are half as long, nothing is converted, and an index alone answers, because these
-- rows seldom change, while each sign-in and upload changes a row of users. And PostgreSQL has statistics for these
-- columns, which it does not use for expressions in partial indexes, so it knows whether many accounts match.
-- Accounts can be read but not changed while the table is filled: 20 seconds for a million on an idle machine.
CREATE VIEW listable_users AS
SELECT id AS user_id, created_at, is_active, role, lower(username) AS username, lower(email) AS email,
       -- The ASCII form of the address, by which lists are sorted.
       lower(coalesce(email_ascii, email)) AS email_key, lower(name) AS name
FROM users
WHERE NOT is_deleted AND NOT is_development_admin;

-- Waits for the uploads that run: they lock rows of users before they change them.
LOCK TABLE users IN EXCLUSIVE MODE;
CREATE TABLE listed_users AS SELECT * FROM listable_users ORDER BY created_at, user_id;
ALTER TABLE listed_users
    ADD PRIMARY KEY (user_id),
    ADD CONSTRAINT listed_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;

-- An index for each order. Of two that were created at one time the one with the smaller id comes first in both orders,
-- and accounts without a name come last in both.
CREATE INDEX listed_users_oldest ON listed_users (created_at, user_id);
CREATE INDEX listed_users_created ON listed_users (created_at DESC, user_id);
CREATE INDEX listed_users_name ON listed_users (name, user_id);
CREATE INDEX listed_users_name_desc ON listed_users (name DESC NULLS LAST, user_id);
CREATE INDEX listed_users_email ON listed_users (email_key, user_id);
CREATE INDEX listed_users_admins ON listed_users (created_at, user_id) WHERE role = 'admin';
CREATE INDEX listed_users_inactive ON listed_users (created_at, user_id) WHERE NOT is_active;

-- There is no such operator class where V4 was not allowed to create the extension. Then a search reads all rows.
DO $$
BEGIN
    CREATE INDEX listed_users_search ON listed_users
    USING gin (email gin_trgm_ops, name gin_trgm_ops, username gin_trgm_ops);
EXCEPTION WHEN undefined_object THEN
    RAISE WARNING 'no extension pg_trgm: searching users will read all of them (%)', SQLERRM;
END
$$;
ANALYZE listed_users;

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
AFTER UPDATE OF created_at, is_active, role, username, email, email_ascii, name, is_deleted ON users FOR EACH ROW
WHEN ((NEW.created_at, NEW.is_active, NEW.role, NEW.username, NEW.email, NEW.email_ascii, NEW.name, NEW.is_deleted)
      IS DISTINCT FROM
      (OLD.created_at, OLD.is_active, OLD.role, OLD.username, OLD.email, OLD.email_ascii, OLD.name, OLD.is_deleted))
EXECUTE FUNCTION list_user_anew();
