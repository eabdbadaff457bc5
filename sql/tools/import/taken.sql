-- Which accounts of a JSON array $1, with the ids that they are to have, cannot be created: because an account is there
-- that has the address, or one that has the username.
SELECT given.id,
       EXISTS (SELECT FROM users u
               WHERE u.email_key = given.email_key AND NOT u.is_deleted AND NOT u.is_development_admin) AS is_there,
       EXISTS (SELECT FROM users u
               WHERE folded(u.username) = folded(given.username) AND NOT u.is_deleted
                     AND NOT u.is_development_admin) AS has_taken_username
FROM jsonb_populate_recordset(NULL::users, $1) given
