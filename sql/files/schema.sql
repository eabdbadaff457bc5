-- Deleted users whose files still have records, which the program removes in small batches. It is a table and not an
-- index on users, because an index on their totals would have to be updated with every upload.
CREATE TABLE pending_removals (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE
);

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
    -- The names of the folders in which the file lies, each followed by U+0001: none for the root. That sorts before
    -- all that a name may contain, so what lies below a folder follows it, and folders are in the order of their names.
    folder text COLLATE "C" NOT NULL DEFAULT '',
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
    -- The CRC-32 of the content, its 32 bits read as a signed number.
    crc32 integer NOT NULL DEFAULT 0,
    -- The link by which a stranger sent it, if one did. It outlives the link.
    received_by uuid,
    -- Whether a stranger sent it, and its owner has given it no other name, description or folder since. Links to
    -- folders do not show it, or strangers could serve each other files.
    is_as_received boolean NOT NULL DEFAULT false,
    disk_usage bigint NOT NULL GENERATED ALWAYS AS (disk_usage(file_size, description)) STORED
);

-- The version of a file's record, by which clients say which one they have seen (`ETag`). A trigger raises it, so that
-- no statement can forget it, and gives the change its number. The time of a change is no version: it is that of the
-- transaction's beginning, so two changes may have the same, and a later one an earlier time.
CREATE FUNCTION raise_file_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.is_as_received := OLD.is_as_received AND (NEW.filename, NEW.description, NEW.folder)
                          IS NOT DISTINCT FROM (OLD.filename, OLD.description, OLD.folder);
    -- A statement that changes many files gives them theirs, in their order.
    IF NEW.change_number = OLD.change_number THEN
        NEW.change_number := nextval('change_numbers');
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER files_version BEFORE UPDATE ON files FOR EACH ROW EXECUTE FUNCTION raise_file_version();

-- An index for each order of a user's files, and of those in a folder, and how many there are of a type. Those of one
-- size are in the order of their ids in both directions; an index has only one of the two, the largest files first,
-- which is asked for most.
CREATE INDEX files_newest ON files (user_id, upload_date DESC, id);
CREATE INDEX files_name ON files (user_id, folded(filename), id);
CREATE INDEX files_size ON files (user_id, file_size DESC, id);
CREATE INDEX files_folder_newest ON files (user_id, folder, upload_date DESC, id);
CREATE INDEX files_folder_name ON files (user_id, folder, folded(filename), id);
CREATE INDEX files_folder_size ON files (user_id, folder, file_size DESC, id);
CREATE INDEX files_type ON files (user_id, content_type);
CREATE INDEX files_changed ON files (user_id, change_number, id);
-- The published ones of all users, the newest first. Uploads do not change it.
CREATE INDEX files_public ON files (upload_date DESC, id) WHERE is_public;

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

-- How many files are in each folder that has any.
CREATE TABLE folder_totals (
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    folder text COLLATE "C" NOT NULL,
    files bigint NOT NULL,
    PRIMARY KEY (user_id, folder)
);

-- The first text after all folders that are `folder` or lie below it. A name has at most 255 characters.
CREATE FUNCTION after_folder(folder text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE folder WHEN '' THEN repeat(chr(1114111), 256) ELSE left(folder, -1) || chr(2) END
$$;

CREATE FUNCTION add_to_folder(of_user uuid, to_folder text, more bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO folder_totals AS total VALUES (of_user, to_folder, more)
    ON CONFLICT (user_id, folder) DO UPDATE SET files = total.files + more;
    IF more < 0 THEN
        DELETE FROM folder_totals WHERE user_id = of_user AND folder = to_folder AND files = 0;
    END IF;
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
    IF present <> 0 THEN
        PERFORM add_to_folder(user_id, folder, present * count(*)) FROM changed GROUP BY user_id, folder;
    END IF;
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
CREATE TRIGGER deleted_contents_added AFTER INSERT ON deleted_contents REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_contents_removed AFTER DELETE ON deleted_contents REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();

CREATE FUNCTION count_moved_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_folder(user_id, folder, sum(files)::bigint)
    FROM (SELECT user_id, folder, 1 AS files FROM added UNION ALL SELECT user_id, folder, -1 FROM removed) changed
    GROUP BY user_id, folder HAVING sum(files) <> 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER files_moved AFTER UPDATE ON files REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_moved_files();

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
        usage := (SELECT coalesce(sum(u.disk_usage + (SELECT coalesce(sum(p.disk_usage), 0) FROM partial_uploads p
                                                      WHERE user_id = u.id)), 0) FROM users u
                  WHERE created_at > now() - interval '7 days' AND is_self_registered);
    END IF;
    RETURN usage;
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

-- All files that have a record, also those of deleted users, whose records the program removes later.
CREATE TABLE file_totals (
    day date NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL
);

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

-- Makes those of these files that the user has public or private, and moves them into a folder, so that the changes are
-- in the order of `ids`; null leaves a column as it is. One that is so already stays as it is. The caller has locked
-- the user's row. Returns the files that the user has, in their order, and the names of the columns that are changed,
-- null if there are none. A plan for any ids could read all files of a user who has many.
CREATE FUNCTION update_files(of_user uuid, ids uuid[], public boolean, to_folder text)
RETURNS TABLE (file_id uuid, fields jsonb) LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    changed jsonb;
BEGIN
    WITH numbered AS MATERIALIZED (
        SELECT one, nextval('change_numbers') AS number FROM unnest(ids) one
    ), done AS (
        UPDATE files SET is_public = coalesce(public, before.is_public), folder = coalesce(to_folder, before.folder),
                         updated_at = now(), change_number = number
        FROM numbered JOIN files before ON before.id = one
        WHERE files.id = one AND files.user_id = of_user
          AND (before.is_public <> public OR before.folder <> to_folder)
        RETURNING one, array_remove(ARRAY[CASE WHEN before.is_public <> files.is_public THEN 'is_public' END,
                                          CASE WHEN before.folder <> files.folder THEN 'folder' END], NULL) AS names
    )
    SELECT coalesce(jsonb_object_agg(one, names), '{}') INTO changed FROM done;
    RETURN QUERY SELECT one, changed -> one::text FROM unnest(ids) one
                 WHERE EXISTS (SELECT FROM files WHERE id = one AND user_id = of_user);
END
$$;
