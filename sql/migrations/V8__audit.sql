-- The audit log: who did what to whom, from where, and how it ended. `README.md` says what each action means.
-- Both lists are types, so that a query can go through all kinds of events, and an index entry needs four bytes each.
CREATE TYPE audit_action AS ENUM (
    'auth.register', 'auth.login', 'auth.logout', 'auth.refresh_reuse', 'auth.session_end', 'auth.token_create',
    'auth.token_delete', 'password.change', 'password.reset_request', 'password.reset', 'email.change', 'user.create',
    'user.update', 'user.delete', 'users.export', 'file.upload', 'file.update', 'file.delete', 'admin.create',
    'access.denied'
);
CREATE TYPE audit_outcome AS ENUM ('success', 'failure');

-- No column refers to another table: an event outlives what it is about.
CREATE TABLE audit_events (
    -- The time of the change itself and not of its transaction, so that events about one row are in the order in which
    -- its lock was given.
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    action audit_action NOT NULL,
    outcome audit_outcome NOT NULL DEFAULT 'success',
    -- The account that acted. Null if nobody was signed in, and on the command line.
    actor_id uuid,
    -- What it acted on: 'user', 'file', 'session' or 'token', and its id.
    subject_type text,
    subject_id uuid,
    -- The client's address and the value of X-Request-ID. Null on the command line.
    address inet,
    request_id uuid,
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (at, id),
    CONSTRAINT audit_events_subject_check CHECK ((subject_type IS NULL) = (subject_id IS NULL))
);

-- A page reads the newest events of each kind from one of these, see audit/page.sql. Both filters by id, together,
-- are answered by the last one alone.
CREATE INDEX audit_events_kind ON audit_events (action, outcome, at, id);
CREATE INDEX audit_events_actor ON audit_events (actor_id, action, outcome, at, id) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_subject ON audit_events (subject_id, action, outcome, at, id, actor_id)
WHERE subject_id IS NOT NULL;

-- Events stay as they are. This protects them from mistakes, not from the owner of the database. Only the query
-- audit/sweep.sql, which sets this setting for its own transaction, may delete some.
CREATE FUNCTION keep_audit_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are neither changed nor deleted'
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_events_are_kept';
END
$$;

CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_events();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_events();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events FOR EACH ROW
WHEN (current_setting('cloakroom.removes_old_audit_events', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION keep_audit_events();

-- Where a password reset was requested from. The event is written later, when the account is looked up, so that the
-- time of the response does not tell whether there is one.
ALTER TABLE password_reset_requests ADD COLUMN address inet, ADD COLUMN request_id uuid;

-- As before, and returns how many sessions it ended, for the event.
DROP FUNCTION end_sessions(uuid, uuid);
CREATE FUNCTION end_sessions(of_user uuid, but_not uuid DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ended bigint;
BEGIN
    UPDATE sessions SET ended_at = now()
    WHERE user_id = of_user AND ended_at IS NULL AND id IS DISTINCT FROM but_not;
    GET DIAGNOSTICS ended = ROW_COUNT;
    RETURN ended;
END
$$;

-- As before, but at most five notices of a new address and ten of a new password a day for each account: an account may
-- have the address of somebody who does not know of it, and whom the notices of endless changes would bury. The first
-- one, which warns an owner, is always sent.
CREATE OR REPLACE FUNCTION queue_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.password_hash <> OLD.password_hash
       AND (SELECT count(*) FROM audit_events
            WHERE subject_id = NEW.id AND action IN ('password.change', 'password.reset') AND outcome = 'success'
              AND at > now() - interval '1 day') <= 10 THEN
        INSERT INTO outbox (kind, user_id) VALUES ('password_changed', NEW.id);
    END IF;
    IF lower(NEW.email) <> lower(OLD.email)
       AND (SELECT count(*) FROM audit_events
            WHERE subject_id = NEW.id AND action = 'email.change' AND outcome = 'success'
              AND at > now() - interval '1 day') <= 5 THEN
        INSERT INTO outbox (kind, user_id, address) VALUES ('email_changed', NEW.id, OLD.email);
    END IF;
    RETURN NULL;
END
$$;
