-- The bytes of all files, which the triggers on files keep.
SELECT used AS bytes FROM storage
