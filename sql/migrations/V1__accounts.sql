-- Accounts. A row without a password hash is no account of a person: it is the development admin.
-- It cannot sign in, holds no name against others, and never counts as an admin.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    username text,
    email text NOT NULL,
    name text,
    password_hash text,
    role text NOT NULL DEFAULT 'user' CONSTRAINT users_role_check CHECK (role IN ('user', 'admin')),
    permissions text[] NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT true,
    is_deleted boolean NOT NULL DEFAULT false,
    -- Changes with the password and the e-mail address: a reset token is good for one version.
    credentials_version integer NOT NULL DEFAULT 1,
    -- Tokens without a session are good when they are younger than this.
    sessions_ended_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_login timestamptz,
    -- Kept by the triggers on files.
    total_uploads bigint NOT NULL DEFAULT 0,
    total_storage_used bigint NOT NULL DEFAULT 0
);

-- Unique without regard to case, among accounts that are not deleted.
CREATE UNIQUE INDEX users_username_key ON users (lower(username)) WHERE NOT is_deleted AND password_hash IS NOT NULL;
CREATE UNIQUE INDEX users_email_key ON users (lower(email)) WHERE NOT is_deleted AND password_hash IS NOT NULL;

-- One row a sign-in. An ended session stays until its last token has expired: it is the blacklist.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The refresh token that is good now, and the ones it replaced, newest first, with the time of
    -- each rotation. Eight are remembered; nobody rotates more often within the grace.
    refresh_id uuid NOT NULL,
    rotated_ids uuid[] NOT NULL DEFAULT '{}',
    rotated_at timestamptz[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When the last token of the session has expired.
    expires_at timestamptz NOT NULL,
    ended_at timestamptz
);

CREATE INDEX sessions_user ON sessions (user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Asked-for password resets that wait for the background thread, known address or not.
CREATE TABLE password_reset_requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE used_password_reset_tokens (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    token_hash text NOT NULL CONSTRAINT used_password_reset_tokens_token_hash_key UNIQUE,
    used_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

CREATE INDEX used_password_reset_tokens_expiry ON used_password_reset_tokens (expires_at);
