-- Links by which anyone may download files for a while: one file, several, or what lies in a folder; or by which anyone
-- may send files to a folder. Only the hashes of their tokens are stored, so nobody who reads the table can use them.
CREATE TABLE file_links (
    id uuid PRIMARY KEY,
    file_id uuid REFERENCES files ON DELETE CASCADE,
    -- Several files: at most 100, each once, all of them the owner's. A deleted file is taken out by a trigger.
    files uuid[],
    -- In the form of files.folder. What lies in it or below it is looked up at each use.
    folder text COLLATE "C",
    -- The folder to which files are sent, in the same form.
    upload_to text COLLATE "C",
    -- The owner of the files.
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the token.
    token_hash bytea NOT NULL CONSTRAINT file_links_token_hash_key UNIQUE,
    -- Whether browsers show a file, if its type is one that they show safely, in place of saving it.
    inline boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- The hour of the last download, or of the last file that was sent.
    last_used_at timestamptz,
    -- Of a link to send files by: how many it takes, and how many came, whatever became of them since; what its owner
    -- says to whoever has it; and whether the owner wants mail when files come.
    max_files integer,
    max_bytes bigint,
    received_files integer,
    received_bytes bigint,
    note text,
    notify boolean,
    CONSTRAINT file_links_target_check CHECK (num_nonnulls(file_id, files, folder, upload_to) = 1),
    CONSTRAINT file_links_receipts_check CHECK (
        num_nonnulls(max_files, max_bytes, received_files, received_bytes, notify)
        = CASE WHEN upload_to IS NULL THEN 0 ELSE 5 END AND received_files <= max_files AND received_bytes <= max_bytes)
);

CREATE INDEX file_links_file ON file_links (file_id);
CREATE INDEX file_links_several ON file_links (user_id) WHERE files IS NOT NULL;
CREATE INDEX file_links_user ON file_links (user_id, expires_at);
CREATE INDEX file_links_expiry ON file_links (expires_at);

-- Whether a user may have another link: fewer than `most_of_user` live ones, and those to file `of_file`, unless that
-- is null, are fewer than `most_of_file`. A function, because its statement takes a new snapshot: it counts the links
-- that were committed while the caller waited for the lock of the owner's row.
CREATE FUNCTION has_room_for_file_link(of_user uuid, of_file uuid, most_of_user bigint, most_of_file bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) < most_of_user AND count(*) FILTER (WHERE file_id = of_file) < most_of_file
            FROM file_links WHERE user_id = of_user AND expires_at > now());
END
$$;

-- Takes deleted files out of the links to several, for good, and ends each link that has none left. The sweep of links
-- whose time is over passes rows that are locked over, so it and this do not wait for each other in two orders.
CREATE FUNCTION unlink_deleted_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Few are looked for in each link before it is taken apart.
    few uuid[] := (SELECT CASE WHEN count(*) <= 10 THEN array_agg(id) END FROM removed);
BEGIN
    UPDATE file_links SET files = rest.files
    FROM (SELECT link.id, coalesce(array_agg(file ORDER BY place) FILTER (WHERE removed.id IS NULL), '{}') AS files
          FROM file_links link CROSS JOIN unnest(link.files) WITH ORDINALITY one (file, place)
          LEFT JOIN removed ON removed.id = file
          WHERE link.user_id = ANY (ARRAY(SELECT DISTINCT user_id FROM removed)) AND link.files IS NOT NULL
            AND (few IS NULL OR link.files && few)
          GROUP BY link.id HAVING count(removed.id) > 0) rest
    WHERE rest.id = file_links.id;
    IF FOUND THEN
        DELETE FROM file_links WHERE user_id = ANY (ARRAY(SELECT DISTINCT user_id FROM removed)) AND files = '{}';
    END IF;
    RETURN NULL;
END
$$;

-- It comes before those that lock what all files take, because of its name.
CREATE TRIGGER files_leave_links AFTER DELETE ON files REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION unlink_deleted_files();

CREATE FUNCTION tell_of_received_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM queue_mail_of_received_files(NEW.user_id, NEW.received_files - OLD.received_files);
    RETURN NULL;
END
$$;

CREATE TRIGGER file_links_received AFTER UPDATE OF received_files ON file_links FOR EACH ROW
WHEN (NEW.notify) EXECUTE FUNCTION tell_of_received_files();
