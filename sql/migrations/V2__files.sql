-- Files: the contents lie in the data directory under file_path, which is 'files/' and the id.
CREATE TABLE files (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    filename varchar(255) NOT NULL,
    original_filename varchar(255) NOT NULL,
    content_type varchar(100) NOT NULL,
    file_size bigint NOT NULL CONSTRAINT files_file_size_check CHECK (file_size >= 0),
    file_path varchar(500) NOT NULL,
    file_hash varchar(64) NOT NULL,
    description text,
    upload_date timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    is_public boolean NOT NULL DEFAULT false
);

-- Serves the default order of the list.
CREATE INDEX files_newest ON files (user_id, upload_date DESC, id);

-- What all files take together: one row, whose lock puts parallel uploads in a line.
CREATE TABLE storage (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT storage_is_only_check CHECK (is_only),
    used bigint NOT NULL
);

INSERT INTO storage (used) VALUES (0);

-- The totals of users and of the service are computed from the files, once a change instead of once a
-- look: every authenticated request reads a user's, every upload compares both with the quotas.
-- Always the user's row before the service's, so that no two changes wait for each other.
CREATE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$
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
    UPDATE storage SET used = used + sign * bytes;
    RETURN NULL;
END
$$;

CREATE TRIGGER files_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER files_removed AFTER DELETE ON files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_files();
