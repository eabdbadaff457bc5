-- The bytes of all files: as kept in the row of storage, null if that is gone, and as the sum over the records. In the
-- snapshot of one statement they agree. Beside them the number of accounts, also deleted ones.
SELECT (SELECT used FROM storage) AS kept, (SELECT coalesce(sum(file_size), 0)::bigint FROM files) AS counted,
       (SELECT count(*) FROM users) AS accounts
