-- What all files take together is a sharded counter: the sum over these rows. With one row, each upload and deletion
-- waited until the commit of the one before was on the disk. A single shard means nothing, and may be negative, because
-- a file may be subtracted from another shard than it was added to.
CREATE TABLE storage_shards (
    shard smallint PRIMARY KEY,
    used bigint NOT NULL
);

-- Waits for the uploads and deletions that run, which lock a row of users before they change the old total. Those that
-- follow wait for this lock before they have changed anything, so neither loses its work.
LOCK TABLE users IN EXCLUSIVE MODE;

INSERT INTO storage_shards (shard, used)
SELECT 0, coalesce((SELECT used FROM storage), (SELECT sum(file_size) FROM files), 0)
UNION ALL SELECT shard, 0 FROM generate_series(1, 63) shard;

DROP TABLE storage;

-- The totals of users and of the service are computed from the files, once a change instead of once a look: every
-- authenticated request reads a user's, every upload compares both with the quotas. The user's row is locked before
-- the shard, and nothing after it. A shard that another transaction has locked is passed over, so this waits for others
-- only if all are.
CREATE OR REPLACE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    bytes bigint := (SELECT sum(file_size) FROM changed);
BEGIN
    IF bytes IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE users u
    SET total_uploads = total_uploads + sign * c.files, total_storage_used = total_storage_used + sign * c.bytes
    FROM (SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM changed GROUP BY user_id) c
    WHERE u.id = c.user_id;
    UPDATE storage_shards SET used = used + sign * bytes
    WHERE shard = (SELECT shard FROM storage_shards LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        UPDATE storage_shards SET used = used + sign * bytes WHERE shard = pg_backend_pid() % 64;
    END IF;
    RETURN NULL;
END
$$;

-- One row with the bytes of all files, once no other upload is about to add to them. None does before the caller's
-- transaction ends. This lock is released after the transaction's changes have become visible, and each statement of a
-- function takes a new snapshot, so the sum has the files of all who held the lock before.
CREATE FUNCTION lock_storage_used() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: quota of the service'));
    RETURN QUERY SELECT sum(used)::bigint FROM storage_shards;
END
$$;

-- Whether a file of `size` bytes fits into the `quota` of the service. The caller has locked the user's row, and adds
-- the file in the same transaction.
-- While a quarter of the quota is free, nobody needs to see what the others are about to add, because all of it fits
-- into that quarter: half of it is for small files, of which each connection adds one at a time, and half for a single
-- large one. They hold the lock of the quota shared. Nearer to the quota, or with a file that is larger still, an upload
-- holds it alone.
CREATE FUNCTION has_storage_for(size bigint, quota bigint) RETURNS boolean LANGUAGE plpgsql AS $$
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
    RETURN (SELECT used + size <= quota FROM lock_storage_used() used);
END
$$;

-- Processes of the release before, which may still run, read the total here. So they decide about each upload alone.
-- PostgreSQL expects a thousand rows of a function that returns a set, so their statement locks the user's row first.
CREATE VIEW storage AS SELECT true AS is_only, used FROM lock_storage_used() used;
