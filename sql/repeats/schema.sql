-- The uploads of the last day that had an Idempotency-Key, so that one with the same key is answered as the first was.
-- The row is written in the statement that records the file, and outlives it. It holds none of what the client sent but
-- the key, because another upload must be the same as the first to be answered: a hash says whether it is.
CREATE TABLE idempotency_keys (
    -- The user, or the link by which a stranger sent the file.
    sender_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    file_id uuid NOT NULL,
    -- SHA-256 of the file's hash, its type, its name and its description.
    request_hash bytea NOT NULL,
    file_size bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sender_id, key)
);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- How many keys of a user or link are not over. The caller has locked the user's row, and this is a function for its
-- new snapshot, so parallel uploads do not exceed the limit.
CREATE FUNCTION count_idempotency_keys(of_sender uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM idempotency_keys
            WHERE sender_id = of_sender AND created_at > now() - interval '1 day');
END
$$;
