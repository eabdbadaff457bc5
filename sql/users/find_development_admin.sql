-- The development admin, whose id is $1, if it is usable.
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, storage_quota, file_quota,
       second_factor_at IS NOT NULL AS second_factor
FROM users
WHERE id = $1 AND is_active AND NOT is_deleted
