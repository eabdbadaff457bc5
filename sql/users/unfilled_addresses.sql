-- Up to a thousand accounts with an id after $1 whose domain is not ASCII, and which have no ASCII form of their
-- address: those that were made before such forms were stored, and have an address whose form is taken or that has
-- none.
SELECT id, email FROM users
WHERE email_ascii IS NULL AND email ~ '[^ -~][^@]*$' AND id > $1 AND NOT is_deleted
ORDER BY id
LIMIT 1000
