-- Deleted files can be restored for some days, and each change of a file has a number, by which clients follow changes.
-- No row of a table is written anew: files that are there have the number 0. Programs of before must stop first: they
-- would take the contents of deleted files for lost ones.
-- Each change of a file gets its file the next of these numbers, while the transaction holds the lock of the owner's
-- row, until it is committed. So of two changes of one owner's files the one with the greater number is committed
-- later, and whoever has seen a number has missed none before it. The numbers of other owners lie between them.
CREATE SEQUENCE change_numbers;

ALTER TABLE files ADD COLUMN change_number bigint NOT NULL DEFAULT 0;
ALTER TABLE files ALTER COLUMN change_number SET DEFAULT nextval('change_numbers');
CREATE INDEX files_changed ON files (user_id, change_number, id);

ALTER TABLE users
    ADD COLUMN deleted_files bigint NOT NULL DEFAULT 0,
    ADD COLUMN deleted_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN remembered_deletions bigint NOT NULL DEFAULT 0,
    ADD COLUMN forgotten_change bigint NOT NULL DEFAULT 0;
CREATE INDEX users_deleted_bytes ON users (deleted_bytes) WHERE deleted_bytes > 0;

-- Files that their owners have deleted and may restore for some days. The contents stay where they are.
CREATE TABLE deleted_files (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    filename varchar(255) NOT NULL,
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
    was_young boolean NOT NULL
);

-- The order in which those of a user make room for others, and the order in which the time of all is over.
CREATE INDEX deleted_files_room ON deleted_files (user_id, was_young DESC, deleted_at, id);
CREATE INDEX deleted_files_age ON deleted_files (deleted_at);

-- What each content is to be, also that of a deleted file.
CREATE VIEW recorded_contents AS
SELECT id, user_id, file_size, file_hash FROM files
UNION ALL
SELECT id, user_id, file_size, file_hash FROM deleted_files;

-- Deletions of files, also of those that cannot be restored, so that clients that follow changes learn of them.
CREATE TABLE file_deletions (
    file_id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    change_number bigint NOT NULL DEFAULT nextval('change_numbers'),
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX file_deletions_changed ON file_deletions (user_id, change_number);
CREATE INDEX file_deletions_age ON file_deletions (deleted_at);

CREATE OR REPLACE FUNCTION raise_file_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.change_number := nextval('change_numbers');
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    bytes bigint := (SELECT sum(file_size) FROM changed);
BEGIN
    IF bytes IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE users u
    SET total_uploads = total_uploads + sign * c.files, total_storage_used = total_storage_used + sign * c.bytes,
        remembered_deletions = remembered_deletions + CASE WHEN sign < 0 AND NOT is_deleted THEN c.files ELSE 0 END
    FROM (SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM changed GROUP BY user_id) c
    WHERE u.id = c.user_id;
    IF sign < 0 THEN
        INSERT INTO file_deletions (file_id, user_id)
        SELECT changed.id, user_id FROM changed JOIN users owner ON owner.id = user_id AND NOT owner.is_deleted
        ON CONFLICT (file_id) DO UPDATE SET change_number = excluded.change_number, deleted_at = excluded.deleted_at;
    END IF;
    UPDATE storage_shards SET used = used + sign * bytes
    WHERE shard = (SELECT shard FROM storage_shards LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        UPDATE storage_shards SET used = used + sign * bytes WHERE shard = pg_backend_pid() % 64;
    END IF;
    RETURN NULL;
END
$$;

-- The totals of a user's deleted files.
CREATE FUNCTION count_deleted_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    UPDATE users u
    SET deleted_files = deleted_files + sign * c.files, deleted_bytes = deleted_bytes + sign * c.bytes
    FROM (SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM changed GROUP BY user_id) c
    WHERE u.id = c.user_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER deleted_files_added AFTER INSERT ON deleted_files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_files();
CREATE TRIGGER deleted_files_removed AFTER DELETE ON deleted_files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_files();

-- Forgets the oldest deletions of a user's files, so that there are fewer than `most`. The caller has locked the user's
-- row, as the callers of the next two functions have. These are functions for their new snapshots.
CREATE FUNCTION forget_deletions(of_user uuid, most bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    too_many bigint := (SELECT remembered_deletions + 1 - most FROM users WHERE id = of_user);
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
-- ago deleted first. So what somebody uploads only to delete it does not push out what was there before. Returns
-- whether the new one itself may stay. Contents without a record are removed soon.
CREATE FUNCTION make_room_for_deleted_file(of_user uuid, size bigint, is_young boolean, most_bytes bigint,
                                           most_files bigint)
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
               ORDER BY was_young DESC, deleted_at, id LOOP
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
    WITH gone AS (DELETE FROM deleted_files WHERE id = ANY (purged) RETURNING id)
    INSERT INTO deleted_contents (id, deleted_at) SELECT id, '-infinity' FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at;
    RETURN stays AND bytes <= 0 AND files <= 0;
END
$$;

-- Restores files of a user, at most 10,000: `only_file` or, if that is null, those deleted at `since` or later, the
-- latest deleted first, and each that still fits into the quotas of bytes and files of the user, of bytes of the
-- service, and of bytes of young accounts that registered themselves. Returns how many it restored, and how many of
-- those that it was asked for remain deleted.
CREATE FUNCTION restore_files(of_user uuid, only_file uuid, since timestamptz, most_bytes bigint, most_files bigint,
                              most_of_service bigint, most_of_young bigint, OUT restored bigint, OUT remaining bigint)
LANGUAGE plpgsql AS $$
DECLARE
    old record;
    fitting uuid[];
    bytes bigint;
    room bigint;
    max_files bigint;
    is_exact boolean := false;
BEGIN
    SELECT least(most_bytes - total_storage_used,
                 CASE WHEN is_self_registered AND created_at > now() - interval '7 days'
                      THEN storage_left_to_young_accounts(deleted_bytes, most_of_young) END),
           least(most_files - total_uploads, 10000)
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
                       description, upload_date, updated_at, is_public, version)
    SELECT id, user_id, filename, original_filename, content_type, file_size, 'files/' || id, file_hash, description,
           upload_date, updated_at, is_public, version
    FROM back;
    WITH recalled AS (
        DELETE FROM file_deletions WHERE file_id = ANY (fitting) RETURNING file_id
    )
    UPDATE users SET remembered_deletions = remembered_deletions - (SELECT count(*) FROM recalled) WHERE id = of_user;
END
$$;

ALTER TYPE audit_action ADD VALUE 'file.restore' AFTER 'file.delete';
ALTER TYPE audit_action ADD VALUE 'file.purge' AFTER 'file.restore';

DROP TRIGGER audit_events_own_links ON audit_events;
CREATE TRIGGER audit_events_own_links BEFORE INSERT ON audit_events FOR EACH ROW
WHEN ((NEW.action::text IN ('file.link_create', 'file.link_delete', 'file.restore', 'file.purge')
       OR NEW.action::text IN ('second_factor.enable', 'second_factor.disable', 'second_factor.recovery')
          AND NEW.outcome = 'success' AND NEW.actor_id = NEW.subject_id)
      AND NOT NEW.details ? 'hour')
EXECUTE FUNCTION limit_own_changes();
