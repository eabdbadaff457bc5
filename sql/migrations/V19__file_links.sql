-- The statistics do not need it since V17. It comes first, because nobody may use the table meanwhile.
DROP INDEX files_upload_date;

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
    expires_at timestamptz NOT NULL
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

-- The links of a user end when the password changes and when the account is deleted, as personal access tokens do. In
-- an inactive account they only wait.
CREATE FUNCTION end_file_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM file_links WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_file_links AFTER UPDATE ON users FOR EACH ROW
WHEN (NOT OLD.is_deleted AND NEW.is_deleted
      OR OLD.password_hash IS DISTINCT FROM NEW.password_hash
         AND OLD.credentials_version <> NEW.credentials_version)
EXECUTE FUNCTION end_file_links();

ALTER TYPE audit_action ADD VALUE 'file.link_create' AFTER 'file.delete';
ALTER TYPE audit_action ADD VALUE 'file.link_delete' AFTER 'file.link_create';

-- Links and the second factor are own things of a user too, see audit_events_own_changes; what an administrator does to
-- the second factor of another user is not. The actions are compared as texts, because a new value of a type cannot be
-- used before its transaction is committed.
CREATE TRIGGER audit_events_own_links BEFORE INSERT ON audit_events FOR EACH ROW
WHEN ((NEW.action::text IN ('file.link_create', 'file.link_delete')
       OR NEW.action::text IN ('second_factor.enable', 'second_factor.disable', 'second_factor.recovery')
          AND NEW.outcome = 'success' AND NEW.actor_id = NEW.subject_id)
      AND NOT NEW.details ? 'count')
EXECUTE FUNCTION limit_own_changes();

-- Invitations: the mail that tells the owner of an account that an administrator made how to choose a password.
ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check, ADD CONSTRAINT outbox_kind_check
CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created', 'second_factor_enabled',
                'second_factor_disabled', 'recovery_code_used', 'too_many_wrong_codes', 'invitation'));
