-- Sign-ins by an OpenID provider of the last minutes: a row for each state that a browser has brought back, so that
-- none is used twice, and in it the code that the browser got for it, and whom that proves.
CREATE TABLE provider_sign_ins (
    -- SHA-256 of the state, and of the code.
    state_hash bytea PRIMARY KEY,
    code_hash bytea CONSTRAINT provider_sign_ins_code_hash_key UNIQUE,
    used_at timestamptz NOT NULL DEFAULT now(),
    code_expires_at timestamptz,
    -- How often the code was tried, and whether it is used up.
    tries integer NOT NULL DEFAULT 0,
    is_used boolean NOT NULL DEFAULT false,
    challenge text,
    -- Whom the code proves, as the program reads it.
    proven jsonb
);

CREATE INDEX provider_sign_ins_used_at ON provider_sign_ins (used_at);
