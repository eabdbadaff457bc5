-- The account with username or e-mail address $1, for a login of a client with address $2, and whether the account has
-- signed in from the client's network within the last 30 days. A username cannot contain "@", so at most one account
-- matches. If none does, the one row has no id: the work is the same for every name. name_hash tells names apart as the
-- database does, whose lower() depends on its locale.
SELECT id, username, email, name, role, permissions, is_active, created_at, updated_at, last_login,
       total_uploads, total_storage_used, password_hash, credentials_version,
       sha256(convert_to(lower($1), 'UTF8')) AS name_hash,
       EXISTS (
           SELECT FROM sign_in_networks
           WHERE user_id = coalesce(users.id, '00000000-0000-0000-0000-000000000000')
             AND network = sign_in_network($2) AND last_sign_in_at > now() - interval '30 days'
       ) AS knows_network
FROM (SELECT) AS always LEFT JOIN users
     ON (lower(username) = lower($1) OR lower(email) = lower($1)) AND NOT is_deleted AND NOT is_development_admin
