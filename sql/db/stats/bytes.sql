-- The bytes of all files, which the triggers on files keep.
SELECT coalesce(sum(used), 0)::bigint AS bytes FROM storage_shards
