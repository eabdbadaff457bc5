-- Creates imported accounts, which are settled as those that an administrator makes. $1: their columns, as a JSON array
-- of objects, of which an absent one has the column's default; $2: whether the owners of active ones without a password
-- are invited by mail; $3: how many mails were queued before. A mail is due each second, and has its day from then on.
-- The unique indexes decide who is there already: an account that has a username or an address which another one has is
-- left out.
WITH created AS (
    INSERT INTO users (id, username, email, email_key, name, password_hash, role, is_active, created_at, last_login,
                       is_settled)
    SELECT id, username, email, email_key, nullif(name, ''), password_hash, coalesce(role, 'user'),
           coalesce(is_active, true), coalesce(created_at, now()), last_login, true
    FROM jsonb_populate_recordset(NULL::users, $1)
    ON CONFLICT DO NOTHING
    RETURNING id, is_active, password_hash
), message AS (
    INSERT INTO outbox (kind, user_id, created_at, due_at, is_imported)
    SELECT 'invitation', id, at, at, true
    FROM (
        SELECT id, now() + interval '1 second' * ($3::bigint + row_number() OVER ()) AS at
        FROM created
        WHERE $2 AND is_active AND password_hash IS NULL
    ) invited
    RETURNING user_id
), event AS (
    INSERT INTO audit_events (action, subject_type, subject_id, details)
    SELECT 'user.create', 'user', id, '{"by": "import"}' FROM created
)
SELECT created.id, message.user_id IS NOT NULL AS is_invited
FROM created
LEFT JOIN message ON message.user_id = created.id
