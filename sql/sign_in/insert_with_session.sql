-- Creates an account without a username and signs it in, which is its last login. $1: id; $2: e-mail address; $3:
-- display name, of which an empty one is none; $4: password hash; $5: session; $6: its refresh token; $7: when its
-- last token expires; $8: the client's address, whose network is remembered; $9: its user agent; $10: request id of
-- the event; $11: key of the address; $12, $13: issuer and subject of the identity by which its owner signs in, which
-- has confirmed the address, or null; $14: when the session ends at the latest, or null; $15: whether a
-- stranger may have made it. No row means that an account has the address or the identity.
WITH registered AS (
    INSERT INTO users (id, username, email, email_key, name, password_hash, last_login, is_self_registered,
                       identity_issuer, identity_subject, identity_email, is_settled)
    VALUES ($1, NULL, $2, $11, nullif($3, ''), $4, now(), $15,
            $12, $13, CASE WHEN $13::text IS NOT NULL THEN $2 END, $13 IS NOT NULL)
    ON CONFLICT DO NOTHING
    RETURNING *
), opened AS (
    INSERT INTO sessions (id, user_id, refresh_id, expires_at, address, user_agent, ends_at)
    SELECT $5, id, $6, $7, $8, $9, $14 FROM registered
), remembered AS (
    INSERT INTO sign_in_networks (user_id, network) SELECT id, sign_in_network($8) FROM registered
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'auth.register', id, 'user', id, $8, $10,
           jsonb_strip_nulls(jsonb_build_object('session_id', $5::uuid,
                                                'by', CASE WHEN $13 IS NOT NULL THEN 'oidc' END))
    FROM registered
)
SELECT a.* FROM registered, account(registered) a
