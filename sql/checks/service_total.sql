-- The bytes of all files: as kept in the shards, null if there is none, and as the sum over the records. In the snapshot
-- of one statement they agree. Beside them the number of accounts, also deleted ones.
SELECT (SELECT sum(used)::bigint FROM storage_shards) AS kept,
       (SELECT coalesce(sum(file_size), 0)::bigint FROM files) AS counted,
       (SELECT count(*) FROM users) AS accounts
