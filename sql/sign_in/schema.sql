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
    -- When the session ends at the latest, if an OpenID provider has opened it. Null for others.
    ends_at timestamptz,
    ended_at timestamptz,
    -- The client's address and user agent at the sign-in of a session or at its last refresh, by which users recognise
    -- their sessions.
    address inet,
    user_agent text,
    -- The session is live only while this is the epoch of its user.
    epoch integer NOT NULL DEFAULT 1
);

CREATE INDEX sessions_expiry ON sessions (expires_at);
-- The live sessions of a user, newest first.
CREATE INDEX sessions_live ON sessions (user_id, epoch, created_at DESC, id) WHERE ended_at IS NULL;

-- The row of an ended session stays until its last token has expired, but nobody is shown it any more, so it keeps no
-- personal data.
CREATE FUNCTION forget_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.address := NULL;
    NEW.user_agent := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER sessions_forget_client BEFORE UPDATE ON sessions FOR EACH ROW
WHEN (NEW.ended_at IS NOT NULL)
EXECUTE FUNCTION forget_client();

-- Epochs that are over, with sessions that the background thread has not marked as ended yet. Until it has, the rows
-- keep the addresses and user agents of clients. There is no reference to users, which would only cost a look-up.
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
CREATE FUNCTION end_sessions(of_user uuid, but_not uuid DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
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

-- Whether a session of a user is live. As a condition for the user's row it is evaluated once that is locked; and it is
-- a function for its new snapshot, which has what the transaction before did to the session.
CREATE FUNCTION is_live_session(session uuid, of_user uuid, of_epoch integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM sessions WHERE id = session AND user_id = of_user AND epoch = of_epoch AND ended_at IS NULL
    );
END
$$;

-- Whether user `actor` is still signed in by an access token: its session is live, or, for a token without a session,
-- it was issued (`issued_at`, Unix time in seconds) after all sessions of the user were last ended. For statements that
-- come so long after the request was authenticated that the answer may have changed. A function for its new snapshot:
-- asked after a statement has got the lock of a row, it sees what was committed while the statement waited.
CREATE FUNCTION is_signed_in(actor uuid, session uuid, issued_at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM users u LEFT JOIN sessions s ON s.id = session AND s.user_id = u.id AND s.epoch = u.session_epoch
        WHERE u.id = actor AND u.is_active AND NOT u.is_deleted
          AND CASE WHEN session IS NOT NULL THEN s.ended_at IS NULL AND s.expires_at > now()
                   ELSE u.sessions_ended_at IS NULL OR issued_at > floor(extract(epoch FROM u.sessions_ended_at))
              END
    );
END
$$;

-- The networks from which each account has signed in lately. After too many failed sign-ins with a name, further ones
-- are refused except from these networks, so a stranger who causes the failures cannot lock the owner out.
CREATE TABLE sign_in_networks (
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    network cidr NOT NULL,
    last_sign_in_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network)
);

CREATE INDEX sign_in_networks_last_sign_in_at ON sign_in_networks (last_sign_in_at);

-- The network of a client: the /24 of an IPv4 address, the /48 of an IPv6 address. When a person's address changes, for
-- instance because a router reconnects, it often stays in this network, and an attacker's address is rarely in it.
CREATE FUNCTION sign_in_network(address inet) RETURNS cidr LANGUAGE sql IMMUTABLE AS $$
    SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))
$$;
