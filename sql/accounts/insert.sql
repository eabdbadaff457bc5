-- Creates an account. $1: id; $2: username; $3: e-mail address; $4: display name; $5: password hash; $6: role; $7:
-- permissions; $8: whether it is active; $9: creation time; $10: last login; $11, $12, $13: actor, address and request
-- id of the event; $14: key of the e-mail address; $15: whether its owner is invited by mail; $16, $17: session and
-- time of issue of the actor's access token, see is_signed_in, both null for other actors; $18, $19: own quotas of
-- bytes and of files; $20: whether this is a registration whose address is confirmed. A null from $6 to $10 stands for
-- the column's default, and an empty name is none. An account that nobody else creates registers itself; one that an
-- administrator creates, or whose address is confirmed, is settled. The unique indexes decide whether username and
-- address are free. No row means that the actor is not signed in any more, or, at a registration, that an account has
-- the id, also a deleted one, or the address; that comes before a username that is taken.
WITH created AS (
    INSERT INTO users (id, username, email, name, password_hash, role, permissions, is_active, created_at, last_login,
                       email_key, is_settled, is_self_registered, storage_quota, file_quota)
    SELECT $1, $2, $3, nullif($4, ''), $5, coalesce($6, 'user'), coalesce($7, '{}'::text[]), coalesce($8, true),
           coalesce($9, now()), $10, $14, $11::uuid IS NOT NULL OR $20, $11::uuid IS NULL, $18, $19
    WHERE ($17::bigint IS NULL OR is_signed_in($11, $16, $17))
      AND NOT ($20 AND EXISTS (
          SELECT FROM users WHERE id = $1
          UNION ALL
          SELECT FROM users WHERE email_key = $14 AND NOT is_deleted AND NOT is_development_admin
      ))
    ON CONFLICT (id) DO NOTHING
    RETURNING *
), message AS (
    INSERT INTO outbox (kind, user_id) SELECT 'invitation', id FROM created WHERE $15
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id)
    SELECT CASE WHEN $11::uuid IS NULL THEN 'auth.register' ELSE 'user.create' END::audit_action,
           coalesce($11, id), 'user', id, $12, $13
    FROM created
)
SELECT a.* FROM created, account(created) a
