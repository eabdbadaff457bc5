-- The next thousand accounts in the order of creation and then of ids, after the one with creation time $1 and id $2;
-- a null is the beginning. $3: a part of the username or of the e-mail address, without regard to case; null for all.
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, second_factor_at IS NOT NULL AS second_factor
FROM users
WHERE NOT is_deleted AND NOT is_development_admin
  AND ($1::timestamptz IS NULL OR (created_at, id) > ($1, $2::uuid))
  AND ($3::text IS NULL OR strpos(lower(username), lower($3)) > 0 OR strpos(lower(email), lower($3)) > 0)
ORDER BY created_at, id
LIMIT 1000
