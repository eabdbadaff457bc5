-- All sessions of a user end in the same time however many there are: a session is live only while it carries the
-- epoch of its user, and ending all of them raises that. A constant default rewrites neither table.
ALTER TABLE users ADD COLUMN session_epoch integer NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN epoch integer NOT NULL DEFAULT 1;

-- The live sessions of a user, newest first.
DROP INDEX sessions_user;
CREATE INDEX sessions_live ON sessions (user_id, epoch, created_at DESC, id) WHERE ended_at IS NULL;

-- Epochs that are over, with sessions that the background thread has not marked as ended yet. Until it has, the rows
-- keep the addresses and user agents of clients. There is no reference to users, whose rows are never removed.
CREATE TABLE ended_epochs (
    user_id uuid NOT NULL,
    epoch integer NOT NULL,
    PRIMARY KEY (user_id, epoch)
);

-- Ends the sessions of a user, but not `but_not`, and returns how many, for the event. It counts no further than the
-- thousand that a user may have. The count is in the order of the index sessions_live, so that the planner takes that
-- and no other plan. Sign-ins and other ends of all sessions lock the user's row too, so they come before or after.
-- A function, because each of its statements takes a new snapshot: `but_not` may have been kept by another end of all
-- sessions while the caller waited for the user's row. If that has ended it instead, it stays so.
CREATE OR REPLACE FUNCTION end_sessions(of_user uuid, but_not uuid DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ended_epoch integer;
    ended bigint;
BEGIN
    UPDATE users SET session_epoch = session_epoch + 1 WHERE id = of_user
    RETURNING session_epoch - 1 INTO ended_epoch;
    UPDATE sessions SET epoch = ended_epoch + 1
    WHERE id = but_not AND user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL;
    ended := (SELECT count(*) FROM (
        SELECT FROM sessions WHERE user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL
        ORDER BY created_at DESC, id LIMIT 1000
    ) live);
    IF ended > 0 THEN
        INSERT INTO ended_epochs (user_id, epoch) VALUES (of_user, ended_epoch);
    END IF;
    RETURN ended;
END
$$;

-- Ends a session if a user has as many as `most`, so that there is room for another one: one that was never refreshed
-- and whose access token has expired, or else the one least recently refreshed. The caller has locked the user's row,
-- and this is a function for its new snapshot, so parallel sign-ins do not exceed the limit. It looks at no more than
-- the `most` oldest sessions and one, so its work does not grow if there are more, and they become fewer.
CREATE FUNCTION make_room_for_session(of_user uuid, of_epoch integer, most bigint, access_lifetime interval)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET ended_at = now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM (
            SELECT id, created_at, rotated_at FROM sessions
            WHERE user_id = of_user AND epoch = of_epoch AND ended_at IS NULL AND expires_at > now()
            ORDER BY created_at, id DESC LIMIT most + 1
        ) oldest
        ORDER BY rotated_at = '{}' AND created_at < now() - access_lifetime,
                 coalesce(rotated_at[1], created_at) DESC
        OFFSET most - 1
    ));
END
$$;

-- Users who have more than a thousand by now keep those that were refreshed last.
WITH crowded AS (
    SELECT user_id FROM sessions WHERE ended_at IS NULL AND expires_at > now()
    GROUP BY user_id HAVING count(*) > 1000
), kept AS (
    UPDATE sessions SET epoch = 2
    FROM crowded CROSS JOIN LATERAL (
        SELECT id FROM sessions
        WHERE user_id = crowded.user_id AND ended_at IS NULL AND expires_at > now()
        ORDER BY rotated_at <> '{}' DESC, coalesce(rotated_at[1], created_at) DESC LIMIT 1000
    ) latest
    WHERE sessions.id = latest.id
), raised AS (
    UPDATE users SET session_epoch = 2 FROM crowded WHERE users.id = crowded.user_id
)
INSERT INTO ended_epochs (user_id, epoch) SELECT user_id, 1 FROM crowded;
