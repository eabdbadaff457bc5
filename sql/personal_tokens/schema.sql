-- Personal access tokens, which users make for scripts. Only their hashes are stored, so nobody who reads the table can
-- use them.
CREATE TABLE personal_tokens (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- SHA-256 of the whole token.
    token_hash bytea NOT NULL CONSTRAINT personal_tokens_token_hash_key UNIQUE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- The time of the last use, rounded down to the hour.
    last_used_at timestamptz,
    -- What it is accepted for: everything, GET and HEAD, or adding files.
    scope text NOT NULL CONSTRAINT personal_tokens_scope_check CHECK (scope IN ('all', 'read', 'upload'))
);

CREATE INDEX personal_tokens_user ON personal_tokens (user_id);
CREATE INDEX personal_tokens_expiry ON personal_tokens (expires_at);

-- How many live tokens a user has. A function, because its statement takes a new snapshot: it counts the tokens that
-- were committed while the caller waited for the lock of the user's row.
CREATE FUNCTION count_personal_tokens(of_user uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM personal_tokens WHERE user_id = of_user AND expires_at > now());
END
$$;
