-- For the accounts $1, which have no ASCII form of their addresses, and the forms $2: the username, or else the id, of
-- each account whose form another account has, and that of the other one.
SELECT coalesce(account.username, account.id::text) AS account, coalesce(other.username, other.id::text) AS other
FROM unnest($1::uuid[], $2::text[]) AS given (id, email_ascii)
JOIN users account ON account.id = given.id
JOIN users other ON lower(coalesce(other.email_ascii, other.email)) = lower(given.email_ascii)
                    AND other.id <> given.id AND NOT other.is_deleted AND NOT other.is_development_admin
ORDER BY given.id
