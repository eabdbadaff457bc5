-- Uploads that may come in several requests (tus 1.0.0). The row has what quotas count, and what is certainly on the
-- disk of the bytes; these lie in DATA_DIR/partial under the upload's id.
CREATE TABLE partial_uploads (
    -- Also the id that the file will have, if its owner sends it; file_id is another one if a stranger does, by a link.
    id uuid PRIMARY KEY,
    file_id uuid NOT NULL,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    link_id uuid REFERENCES file_links ON DELETE CASCADE,
    -- The network of a stranger.
    network inet,
    -- What the client says of the file, checked by the rules of files; the type as it was declared. The hash that it
    -- must have is in hexadecimal digits.
    folder text COLLATE "C" NOT NULL, filename text NOT NULL, declared_type text, description text, sha256 text,
    file_size bigint NOT NULL CHECK (file_size >= 0),
    -- So many bytes are synced, and what follows from them: the states of SHA-256, CRC-32 and of the check for UTF-8.
    file_offset bigint NOT NULL DEFAULT 0 CHECK (file_offset BETWEEN 0 AND file_size),
    state bytea,
    -- The boot of the host that wrote what is not synced yet: after a loss of power that may be anything.
    boot text,
    -- So many bytes count towards the quotas that many share; at least those that are there.
    charged bigint NOT NULL DEFAULT 0 CHECK (charged BETWEEN 0 AND file_size),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When the last byte came.
    touched_at timestamptz NOT NULL DEFAULT now(),
    -- That of a link at the latest.
    expires_at timestamptz NOT NULL,
    -- Since when the file has a record. From then on the row only says so, and counts nowhere.
    completed_at timestamptz,
    used bigint NOT NULL GENERATED ALWAYS AS (CASE WHEN completed_at IS NULL THEN charged ELSE 0 END) STORED,
    disk_usage bigint NOT NULL GENERATED ALWAYS AS (
        CASE WHEN completed_at IS NULL AND charged > 0 THEN disk_usage(charged, description) ELSE 0 END) STORED
);

CREATE INDEX partial_uploads_user ON partial_uploads (user_id, created_at DESC) WHERE completed_at IS NULL;
CREATE INDEX partial_uploads_link ON partial_uploads (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX partial_uploads_file ON partial_uploads (file_id) WHERE completed_at IS NULL;
CREATE INDEX partial_uploads_expiry ON partial_uploads (expires_at);

-- What was charged is given back once, with the row or with the record of the file, whatever statement does it, and
-- also if the row goes with its link or its user.
CREATE FUNCTION count_partial_upload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_storage(coalesce(NEW.used, 0) - OLD.used, coalesce(NEW.disk_usage, 0) - OLD.disk_usage);
    RETURN NULL;
END
$$;

CREATE TRIGGER partial_uploads_counted AFTER UPDATE OF charged, completed_at OR DELETE ON partial_uploads
FOR EACH ROW EXECUTE FUNCTION count_partial_upload();

-- What the uploads of a user, or by a link, keep that have not ended: their whole lengths, but of those by links only
-- what has come counts for the user. It is a sum over at most some hundred rows and not kept in the row of the user,
-- which rows that go with their link could not lock first. A function, because its statement takes a new snapshot: the
-- caller has locked that row. Those that had no byte since `since` and may end for others do not count; one whose bytes
-- are all there may not, because it is about to be recorded.
CREATE FUNCTION reserved(of_user uuid, of_link uuid, since timestamptz DEFAULT '-infinity',
                         OUT bytes bigint, OUT files bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT coalesce(sum(CASE WHEN link_id IS NOT DISTINCT FROM of_link THEN file_size ELSE charged END), 0),
           count(*) FILTER (WHERE link_id IS NOT DISTINCT FROM of_link) INTO bytes, files
    FROM partial_uploads
    WHERE user_id = of_user AND (of_link IS NULL OR link_id = of_link) AND completed_at IS NULL AND expires_at > now()
      AND (touched_at >= since OR link_id IS DISTINCT FROM of_link OR file_offset = file_size);
END
$$;

-- Whether a user may begin an upload, or a stranger by a link, if these have so many bytes and files left beside what
-- uploads keep, and at most `most` uploads at once, of one network half as many. If it does not fit, but would without
-- those that had no byte for ten minutes, these end, the longest unused first, and for a network that has too many its
-- own; `ended` are their ids. The user's row is locked.
CREATE FUNCTION make_room_for_partial_upload(
    of_user uuid, of_link uuid, of_network inet, size bigint, bytes_left bigint, files_left bigint, most bigint,
    OUT is_left boolean, OUT is_too_many boolean, OUT ended uuid[]) LANGUAGE plpgsql AS $$
DECLARE
    since timestamptz := now() - interval '10 minutes';
    needed bigint := greatest(size, 1);
    idle uuid;
    -- Whether the network has its half, those that may end counted.
    is_crowded boolean;
BEGIN
    SELECT bytes + needed <= bytes_left AND files < files_left, files >= most, '{}' INTO is_left, is_too_many, ended
    FROM reserved(of_user, of_link, since);
    LOOP
        SELECT count(*) >= most / 2,
               is_too_many OR count(*) FILTER (WHERE touched_at >= since OR file_offset = file_size) >= most / 2
        INTO is_crowded, is_too_many
        FROM partial_uploads
        WHERE link_id = of_link AND network = of_network AND completed_at IS NULL AND expires_at > now();
        EXIT WHEN NOT is_left OR is_too_many OR NOT is_crowded AND NOT EXISTS (
            SELECT FROM reserved(of_user, of_link)
            WHERE bytes + needed > bytes_left OR files >= least(files_left, most));
        DELETE FROM partial_uploads
        WHERE id = (SELECT id FROM partial_uploads
                    WHERE user_id = of_user AND link_id IS NOT DISTINCT FROM of_link AND completed_at IS NULL
                      AND touched_at < since AND expires_at > now() AND file_offset < file_size
                      AND (NOT is_crowded OR network = of_network)
                    ORDER BY touched_at LIMIT 1)
        RETURNING id INTO idle;
        ended := ended || idle;
    END LOOP;
END
$$;

-- Notes how many bytes are synced, and lets `new_charge` of them count, if those beyond what counts already fit into
-- all quotas that many share. Returns null if there is no such upload of an active user any more, by a live link.
CREATE FUNCTION advance_partial_upload(
    upload uuid, new_offset bigint, new_state bytea, new_boot text, new_charge bigint, most_of_user bigint,
    most_of_service bigint, most_of_young bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    owner record;
    one record;
BEGIN
    SELECT u.id, total_storage_used, coalesce(storage_quota, most_of_user) AS most,
           is_self_registered AND u.created_at > now() - interval '7 days' AS is_young INTO owner
    FROM users u WHERE u.id = (SELECT user_id FROM partial_uploads WHERE id = upload) AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE;
    SELECT link_id, l.expires_at AS link_ends, new_charge - charged AS more,
           disk_usage(new_charge, p.description) - p.disk_usage AS usage INTO one
    FROM partial_uploads p LEFT JOIN file_links l ON l.id = link_id
    WHERE p.id = upload AND p.user_id = owner.id AND completed_at IS NULL AND p.expires_at > now();
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF one.more > 0 AND (
        one.link_id IS NOT NULL AND owner.total_storage_used + one.more
            + (SELECT bytes FROM reserved(owner.id, NULL)) > owner.most
        OR NOT has_storage_for(one.more, most_of_service)
        OR owner.is_young AND young_disk_usage(one.usage, most_of_young) + one.usage > most_of_young) THEN
        RETURN false;
    END IF;
    UPDATE partial_uploads
    SET file_offset = new_offset, state = new_state, boot = new_boot, charged = new_charge,
        touched_at = CASE WHEN new_offset > file_offset OR new_charge >= charged THEN now() ELSE touched_at END,
        expires_at = CASE WHEN new_offset = file_offset AND new_charge < charged THEN expires_at
                          WHEN link_id IS NULL THEN least(created_at + interval '7 days', now() + interval '1 day')
                          ELSE least(created_at + interval '1 day', now() + interval '1 hour', one.link_ends) END
    WHERE id = upload;
    RETURN true;
END
$$;
