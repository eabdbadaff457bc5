-- The audit log: who did what to whom, from where, and how it ended. The OpenAPI document says what each action means,
-- under `GET /api/v1/admin/audit`.
-- Both lists are types, so that a query can go through all kinds of events, and an index entry needs four bytes each.
CREATE TYPE audit_action AS ENUM (
    'auth.register', 'auth.login', 'auth.logout', 'auth.refresh_reuse', 'auth.session_end', 'auth.token_create',
    'auth.token_delete', 'password.change', 'password.reset_request', 'password.reset', 'email.change',
    'email.change_request', 'user.create', 'user.update', 'user.delete', 'users.export',
    'file.upload', 'file.update', 'file.delete', 'file.restore', 'file.purge', 'file.link_create', 'file.link_delete',
    'file.receive', 'admin.create', 'access.denied', 'second_factor.enable', 'second_factor.disable',
    'second_factor.recovery', 'identity.join', 'identity.leave', 'auth.role', 'folder.move', 'folder.delete'
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
    -- What it acted on: 'user', 'file', 'session', 'token' or 'link', and its id.
    subject_type text,
    subject_id uuid,
    -- The client's address and the value of X-Request-ID. Null on the command line.
    address inet,
    request_id uuid,
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (at, id),
    CONSTRAINT audit_events_subject_check CHECK ((subject_type IS NULL) = (subject_id IS NULL))
);

-- The names of those of these columns that differ between two states of a row, for the event of a change.
CREATE FUNCTION changed_columns(before jsonb, after jsonb, columns text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT name FROM unnest(columns) name WHERE before -> name <> after -> name)
$$;

-- A page reads the newest events of each kind from one of these, see audit/page.sql. Both filters by id, together,
-- are answered by the last one alone.
CREATE INDEX audit_events_kind ON audit_events (action, outcome, at, id);
CREATE INDEX audit_events_actor ON audit_events (actor_id, action, outcome, at, id) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_subject ON audit_events (subject_id, action, outcome, at, id, actor_id)
WHERE subject_id IS NOT NULL;
-- The events that stand for several, which are few, for db/stats/daily.sql.
CREATE INDEX audit_events_folded ON audit_events (action, at) WHERE details ? 'count';
-- Sign-ins that lacked only the code of a second factor, which are no refusals: db/stats/daily.sql subtracts them from
-- the failed ones, which it counts in an index alone.
CREATE INDEX audit_events_missing_code ON audit_events (at) WHERE details ->> 'reason' = 'second_factor_required';

-- Events stay as they are. This protects them from mistakes, not from the owner of the database. Only the query
-- audit/sweep.sql, which sets this setting for its own transaction, may delete some.
CREATE FUNCTION keep_audit_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are neither changed nor deleted'
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_events_are_kept';
END
$$;

CREATE TRIGGER audit_events_no_change BEFORE UPDATE OR TRUNCATE ON audit_events
FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_events();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events FOR EACH ROW
WHEN (current_setting('cloakroom.removes_old_audit_events', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION keep_audit_events();

-- Anybody may register and change what belongs to them as often as the rate limits let them, and events are kept for a
-- year. So that this cannot fill the disk, a user's changes of their own profile, files, personal access tokens and
-- sessions are events of their own only up to a hundred in an hour and a thousand on a day, both in UTC. The others are
-- counted, and audit/insert_skipped.sql writes one event for each action and hour. Files that strangers send by a link
-- count for the link, so they do not use up what the owner has; those of all links of an owner together are events of
-- their own up to a thousand in an hour and five thousand on a day.

-- How many of these events each user, or link, has caused. Rows that are a day old limit nothing and are removed. There
-- is no reference to users, which would only cost a look-up.
CREATE TABLE own_changes (
    -- The user, the link, or what stands for all links of a user.
    user_id uuid PRIMARY KEY,
    -- The hour of the newest event, how many there are in it, and how many on its day.
    hour timestamptz NOT NULL,
    in_hour integer NOT NULL,
    on_day integer NOT NULL
);

-- How many changes of each user or link, hour and action have no event of their own.
CREATE TABLE skipped_changes (
    hour timestamptz NOT NULL,
    user_id uuid NOT NULL,
    action audit_action NOT NULL,
    changes bigint NOT NULL,
    PRIMARY KEY (hour, user_id, action)
);

-- Counts a change, and returns whether there are few. The condition of the update decides that: unlike a SELECT it sees
-- the row as the transaction before it left it, so the limits are exact.
CREATE FUNCTION is_one_of_few(counted uuid, this_hour timestamptz, most_in_hour integer, most_on_day integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO own_changes AS c (user_id, hour, in_hour, on_day) VALUES (counted, this_hour, 1, 1)
    ON CONFLICT (user_id) DO UPDATE
    SET hour = greatest(c.hour, this_hour),
        in_hour = CASE WHEN c.hour < this_hour THEN 1 ELSE c.in_hour + 1 END,
        on_day = CASE WHEN c.hour < date_trunc('day', this_hour, 'UTC') THEN 1 ELSE c.on_day + 1 END
    WHERE (c.hour < this_hour OR c.in_hour < most_in_hour)
      AND (c.hour < date_trunc('day', this_hour, 'UTC') OR c.on_day < most_on_day);
    RETURN FOUND;
END
$$;

-- Counts a change, and lets its event pass while there are few.
CREATE FUNCTION limit_own_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_hour timestamptz := date_trunc('hour', NEW.at, 'UTC');
    of uuid := coalesce(NEW.actor_id, (NEW.details ->> 'link_id')::uuid);
BEGIN
    IF is_one_of_few(of, this_hour, 100, 1000)
       AND (NEW.actor_id IS NOT NULL
            OR is_one_of_few(md5('links of ' || (NEW.details ->> 'owner_id'))::uuid, this_hour, 1000, 5000)) THEN
        RETURN NEW;
    END IF;
    INSERT INTO skipped_changes AS s (hour, user_id, action, changes)
    VALUES (this_hour, of, NEW.action, 1)
    ON CONFLICT (hour, user_id, action) DO UPDATE SET changes = s.changes + 1;
    RETURN NULL;
END
$$;

-- A trigger and not the statements of the changes, so that no statement can forget it. It leaves out what
-- administrators do to others, and their changes of their own role and activity, whose events have the new values. The
-- events that stand for several changes of an hour pass; one that tells of a request which restored several files does
-- not.
CREATE TRIGGER audit_events_own_changes BEFORE INSERT ON audit_events FOR EACH ROW
WHEN (NEW.action = 'file.receive' AND NOT NEW.details ? 'hour' OR NEW.actor_id IS NOT NULL AND (
    NEW.outcome = 'success' AND NOT NEW.details ?| ARRAY['count', 'new']
    AND (NEW.action IN ('file.upload', 'file.update', 'file.delete')
         OR NEW.action IN ('auth.token_create', 'auth.token_delete') AND NEW.subject_type = 'token'
         OR NEW.action IN ('user.update', 'email.change', 'auth.logout') AND NEW.subject_id = NEW.actor_id
         OR NEW.action = 'auth.session_end' AND NEW.subject_type = 'session')
    OR NOT NEW.details ? 'hour'
    AND (NEW.action IN ('file.link_create', 'file.link_delete', 'file.restore', 'file.purge', 'folder.move',
                           'folder.delete')
         OR NEW.action IN ('second_factor.enable', 'second_factor.disable', 'second_factor.recovery',
                           'email.change_request') AND NEW.outcome = 'success' AND NEW.actor_id = NEW.subject_id)))
EXECUTE FUNCTION limit_own_changes();
