-- Anybody may register and change what belongs to them as often as the rate limits let them, and events are kept for a
-- year. So that this cannot fill the disk, a user's changes of their own profile, files, personal access tokens and
-- sessions are events of their own only up to a hundred in an hour and a thousand on a day, both in UTC. The others are counted, and
-- audit/insert_skipped.sql writes one event for each action and hour.

-- How many of these events each user has caused. Rows that are a day old limit nothing and are removed. There is no
-- reference to users, which would only cost a look-up: accounts are never removed from there.
CREATE TABLE own_changes (
    user_id uuid PRIMARY KEY,
    -- The hour of the newest event, how many there are in it, and how many on its day.
    hour timestamptz NOT NULL,
    in_hour integer NOT NULL,
    on_day integer NOT NULL
);

-- How many changes of each user, hour and action have no event of their own.
CREATE TABLE skipped_changes (
    hour timestamptz NOT NULL,
    user_id uuid NOT NULL,
    action audit_action NOT NULL,
    changes bigint NOT NULL,
    PRIMARY KEY (hour, user_id, action)
);

-- Counts a change, and lets its event pass while there are few. The condition of the update decides that: unlike a
-- SELECT it sees the row as the transaction before it left it, so the limits are exact.
CREATE FUNCTION limit_own_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_hour timestamptz := date_trunc('hour', NEW.at, 'UTC');
BEGIN
    INSERT INTO own_changes AS c (user_id, hour, in_hour, on_day) VALUES (NEW.actor_id, this_hour, 1, 1)
    ON CONFLICT (user_id) DO UPDATE
    SET hour = greatest(c.hour, this_hour),
        in_hour = CASE WHEN c.hour < this_hour THEN 1 ELSE c.in_hour + 1 END,
        on_day = CASE WHEN c.hour < date_trunc('day', this_hour, 'UTC') THEN 1 ELSE c.on_day + 1 END
    WHERE (c.hour < this_hour OR c.in_hour < 100)
      AND (c.hour < date_trunc('day', this_hour, 'UTC') OR c.on_day < 1000);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    INSERT INTO skipped_changes AS s (hour, user_id, action, changes)
    VALUES (this_hour, NEW.actor_id, NEW.action, 1)
    ON CONFLICT (hour, user_id, action) DO UPDATE SET changes = s.changes + 1;
    RETURN NULL;
END
$$;

-- A trigger and not the statements of the changes, so that no statement can forget it. It leaves out what
-- administrators do to others, and their changes of their own role and activity, whose events have the new values.
CREATE TRIGGER audit_events_own_changes BEFORE INSERT ON audit_events FOR EACH ROW
WHEN (NEW.outcome = 'success' AND NEW.actor_id IS NOT NULL
      AND (NEW.action IN ('file.upload', 'file.update', 'file.delete')
           OR NEW.action IN ('auth.token_create', 'auth.token_delete') AND NEW.subject_type = 'token'
           OR NEW.action IN ('user.update', 'email.change', 'auth.logout') AND NEW.subject_id = NEW.actor_id
           OR NEW.action = 'auth.session_end' AND NEW.subject_type = 'session')
      AND NOT NEW.details ?| ARRAY['count', 'new'])
EXECUTE FUNCTION limit_own_changes();

-- Contents that stayed although a user deleted the file, because a backup was running. The sweep moves them to the
-- trash. This tells it that they are not contents whose records were lost; not every deletion has an event.
CREATE TABLE kept_contents (
    id uuid PRIMARY KEY,
    kept_at timestamptz NOT NULL DEFAULT now()
);
