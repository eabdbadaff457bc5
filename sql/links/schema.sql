-- Links by which anyone may download a file for a while. Only the hashes of their tokens are stored, so nobody who
-- reads the table can use them.
CREATE TABLE file_links (
    id uuid PRIMARY KEY,
    file_id uuid NOT NULL REFERENCES files ON DELETE CASCADE,
    -- The owner of the file.
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the token.
    token_hash bytea NOT NULL CONSTRAINT file_links_token_hash_key UNIQUE,
    -- Whether browsers show the file, if its type is one that they show safely, in place of saving it.
    inline boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- The hour of the last download.
    last_used_at timestamptz
);

CREATE INDEX file_links_file ON file_links (file_id);
CREATE INDEX file_links_user ON file_links (user_id, expires_at);
CREATE INDEX file_links_expiry ON file_links (expires_at);

-- Whether a file may have another link: it has fewer than `most_of_file` live ones, and its owner fewer than
-- `most_of_user`. A function, because its statement takes a new snapshot: it counts the links that were committed while
-- the caller waited for the lock of the owner's row.
CREATE FUNCTION has_room_for_file_link(of_user uuid, of_file uuid, most_of_user bigint, most_of_file bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) < most_of_user AND count(*) FILTER (WHERE file_id = of_file) < most_of_file
            FROM file_links WHERE user_id = of_user AND expires_at > now());
END
$$;
