-- Signs in user $1. $2: version of the credentials that were checked; $3: a renewed password hash, or null; $4:
-- session; $5: its refresh token; $6: when its last token expires; $7: the client's address; $8: its user agent; $9:
-- request id of the event; $10: the most live sessions of a user; $11: the lifetime of an access token in seconds;
-- $12: time step of the code of the second factor, or null; $13: hash of a recovery code, or null; $14: when the
-- session ends at the latest, if an OpenID provider opens it, or null. No row means that the account was changed,
-- deactivated or deleted while its password was checked, or that it needs a code and does not take this one. The code
-- is taken and the session opened together or not at all. The session has the epoch that the user's row has once it is
-- locked, so an end of all sessions that it waited for does not end this one. The client's network is remembered, and
-- only the 20 latest networks of the account are kept.
WITH signed_in AS (
    UPDATE users
    SET last_login = now(), password_hash = coalesce($3, password_hash),
        second_factor_step = coalesce($12, second_factor_step),
        recovery_codes = array_remove(recovery_codes, $13),
        wrong_codes = 0,
        wrong_code_times = CASE WHEN wrong_code_times[1] > now() - interval '1 hour' THEN wrong_code_times END,
        wrong_code_networks = CASE WHEN wrong_code_times[1] > now() - interval '1 hour' THEN wrong_code_networks END
    WHERE id = $1 AND credentials_version = $2 AND is_active AND NOT is_deleted
      AND (second_factor_at IS NULL OR takes_code(users, $7, $12, $13))
    RETURNING *
), opened AS (
    INSERT INTO sessions (id, user_id, refresh_id, expires_at, address, user_agent, epoch, ends_at)
    SELECT $4, id, $5, $6, $7, $8, session_epoch, $14
    FROM signed_in, make_room_for_session(id, session_epoch, $10, make_interval(secs => $11))
), remembered AS (
    INSERT INTO sign_in_networks (user_id, network)
    SELECT id, sign_in_network($7) FROM signed_in
    ON CONFLICT (user_id, network) DO UPDATE SET last_sign_in_at = now()
), forgotten AS (
    DELETE FROM sign_in_networks
    WHERE user_id = (SELECT id FROM signed_in) AND network IN (
        SELECT network FROM sign_in_networks
        WHERE user_id = $1 AND network <> sign_in_network($7)
        ORDER BY last_sign_in_at DESC OFFSET 19
    )
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.login'::audit_action, id, 'user', id, $7, $9::uuid,
           jsonb_strip_nulls(jsonb_build_object('session_id', $4::uuid,
                                                'by', CASE WHEN $14 IS NOT NULL THEN 'oidc' END))
    FROM signed_in
    UNION ALL
    SELECT 'second_factor.recovery', id, 'user', id, $7, $9,
           jsonb_build_object('codes_left', cardinality(recovery_codes))
    FROM signed_in
    WHERE (SELECT $13::bytea) IS NOT NULL AND second_factor_at IS NOT NULL
)
SELECT a.* FROM signed_in, account(signed_in) a
