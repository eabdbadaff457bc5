-- The numbers of accounts and files, also deleted ones, and the bytes of files, in a backup; a restored database must
-- have the same. The records themselves are counted, not the totals that triggers keep. Files of deleted users are left
-- out, because their contents may be gone already.
SELECT (SELECT count(*) FROM users WHERE NOT is_deleted AND NOT is_development_admin) AS users,
       count(*) AS files, coalesce(sum(f.file_size), 0)::bigint AS bytes
FROM recorded_contents f JOIN users owner ON owner.id = f.user_id AND NOT owner.is_deleted
