-- Files that their owners have deleted and may restore for some days. The contents stay where they are.
CREATE TABLE deleted_files (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    folder text COLLATE "C" NOT NULL DEFAULT '',
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
    crc32 integer NOT NULL DEFAULT 0,
    received_by uuid,
    is_as_received boolean NOT NULL DEFAULT false,
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

-- What is on the disk: the bytes that the quota of the service bounds, which are none of a deleted file that can be
-- restored, and what all of it takes.
CREATE VIEW stored_contents AS
SELECT user_id, file_size AS used, disk_usage FROM files
UNION ALL
SELECT user_id, 0, disk_usage FROM deleted_files
UNION ALL
SELECT user_id, file_size, disk_usage FROM deleted_contents;
CREATE TRIGGER deleted_files_added AFTER INSERT ON deleted_files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER deleted_files_removed AFTER DELETE ON deleted_files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();

-- Makes room for a deleted file of `size` bytes, so that those of the user are at most `most_files` and `most_bytes`
-- together. First those go that were younger than a day when they were deleted, then the others; of both the longest
-- ago deleted first. So what somebody uploads only to delete it does not push out what was there before. At most
-- `at_most` go, so that deleting takes no longer the more there are; db/removals/make_room_of_user takes the others.
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

-- Restores files of a user, at most `at_most`: `only_file` or, if that is null, those deleted at `since` or later, the
-- latest deleted first, and each that still fits into the quotas of bytes and files of the user, and of bytes of the
-- service; in what young accounts share, deleted files count as others do. Returns how many it restored, and how many
-- of those that it was asked for remain deleted.
CREATE FUNCTION restore_files(of_user uuid, only_file uuid, since timestamptz, most_bytes bigint, most_files bigint,
                              most_of_service bigint, at_most bigint, OUT restored bigint, OUT remaining bigint)
LANGUAGE plpgsql AS $$
DECLARE
    old record;
    fitting uuid[];
    bytes bigint;
    room bigint;
    max_files bigint;
    is_exact boolean := false;
BEGIN
    SELECT most_bytes - total_storage_used - kept.bytes, least(most_files - total_uploads - kept.files, at_most)
    INTO room, max_files FROM users, reserved(of_user, NULL) kept WHERE id = of_user;
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
    INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description, upload_date, updated_at, is_public, version, is_utf8, crc32, received_by,
                       is_as_received)
    SELECT id, user_id, folder, filename, original_filename, content_type, file_size, 'files/' || id, file_hash,
           description, upload_date, updated_at, is_public, version, is_utf8, crc32, received_by, is_as_received
    FROM back;
    WITH recalled AS (
        DELETE FROM file_deletions WHERE file_id = ANY (fitting) RETURNING file_id
    )
    UPDATE users SET remembered_deletions = remembered_deletions - (SELECT count(*) FROM recalled) WHERE id = of_user;
END
$$;

-- Deletes those of these files that the user has, as files/delete.sql does with one, so that the changes are in the
-- order of `ids`. Of what the user has deleted, at most 1,000 files make room; db/removals/make_room_of_user takes the
-- others. The caller has locked the user's row. Returns the ids of those that are deleted, in their order.
-- A plan for any ids could read all files of a user who has many.
CREATE FUNCTION delete_files(of_user uuid, ids uuid[], is_restorable boolean, most_bytes bigint, most_files bigint,
                             most_remembered bigint)
RETURNS SETOF uuid LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    deleted uuid[];
BEGIN
    WITH removed AS (
        DELETE FROM files WHERE id = ANY (ids) AND user_id = of_user RETURNING *
    ), restorable AS (
        INSERT INTO deleted_files (id, user_id, folder, filename, original_filename, content_type, file_size, file_hash,
                                   description, upload_date, updated_at, is_public, version, was_young, is_utf8, crc32,
                                   received_by, is_as_received)
        SELECT id, user_id, folder, filename, original_filename, content_type, file_size, file_hash, description,
               upload_date, updated_at, is_public, version, upload_date > now() - interval '1 day', is_utf8, crc32,
               received_by, is_as_received
        FROM removed JOIN unnest(ids) WITH ORDINALITY wanted (one, place) ON one = id
        WHERE is_restorable ORDER BY place
    ), listed AS (
        INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
        SELECT id, '-infinity', user_id, file_size FROM removed WHERE NOT is_restorable
        ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
    )
    SELECT coalesce(array_agg(id), '{}') INTO deleted FROM removed;
    WITH numbered AS MATERIALIZED (
        SELECT one, nextval('change_numbers') AS number FROM unnest(ids) one WHERE one = ANY (deleted)
    )
    UPDATE file_deletions SET change_number = number FROM numbered WHERE file_id = one;
    -- One more than there may be, because there is none to make room for. An own quota may be the greatest number.
    PERFORM forget_deletions(of_user, most_remembered + 1),
            make_room_for_deleted_file(of_user, 0, false, most_bytes, least(most_files, 1e18::bigint) + 1, 1000);
    RETURN QUERY SELECT one FROM unnest(ids) one WHERE one = ANY (deleted);
END
$$;
