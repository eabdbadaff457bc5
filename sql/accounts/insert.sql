-- Creates an account. $1: id; $2: its columns as a JSON object, of which an absent one has the column's default, and an
-- empty name is none; $3: key of the e-mail address; $4, $5, $6: actor, address and request id of the event; $7:
-- whether its owner is invited by mail; $8: whether this is a registration whose address is confirmed; $9, $10: issue
-- time and session of the actor's token, if there is one, which must not have ended. An account that nobody else
-- creates registers itself; one that an administrator creates, or whose address is confirmed, is settled. The unique
-- indexes decide whether username and address are free. No row means that the actor is signed out, or that an account
-- has the id, also a deleted one, or, at a registration, the address; that comes before a username that is taken.
WITH created AS (
    INSERT INTO users (id, username, email, email_key, name, password_hash, role, permissions, is_active, created_at,
                       last_login, storage_quota, file_quota, is_settled, is_self_registered)
    SELECT $1, username, email, $3, nullif(name, ''), password_hash, coalesce(role, 'user'),
           coalesce(permissions, '{}'), coalesce(is_active, true), coalesce(created_at, now()), last_login,
           storage_quota, file_quota, $4::uuid IS NOT NULL OR $8, $4::uuid IS NULL
    FROM jsonb_populate_record(NULL::users, $2)
    WHERE ($9::bigint IS NULL OR is_signed_in($4, $10, $9)) AND NOT ($8 AND EXISTS (
        SELECT FROM users WHERE id = $1
        UNION ALL
        SELECT FROM users WHERE email_key = $3 AND NOT is_deleted AND NOT is_development_admin
    ))
    ON CONFLICT (id) DO NOTHING
    RETURNING *
), message AS (
    INSERT INTO outbox (kind, user_id) SELECT 'invitation', id FROM created WHERE $7
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT CASE WHEN $4::uuid IS NULL THEN 'auth.register' ELSE 'user.create' END::audit_action,
           coalesce($4, id), 'user', id, $5, $6
    FROM created
)
SELECT a.* FROM created, account(created) a
