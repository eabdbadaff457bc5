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
