-- Whether there are records to remove: of deleted users, of deleted files beyond $1 bytes of all, or beyond the quota
-- of a user, whose default is $3 bytes, of files that were deleted more than $2 days ago, and of deletions as long ago,
-- at least a day. Looked at first, so that a lock of a table stops the background thread only if it has work there.
SELECT EXISTS (SELECT FROM pending_removals) AS of_deleted_users,
       coalesce((SELECT sum(deleted_bytes) FROM users WHERE deleted_bytes > 0) > $1::bigint, false) AS beyond_quota,
       EXISTS (SELECT FROM users WHERE deleted_bytes > 0 AND deleted_bytes > $3::bigint
                                   AND deleted_bytes > coalesce(storage_quota, 0)) AS beyond_own_quota,
       coalesce((SELECT min(deleted_at) FROM deleted_files) < now() - make_interval(days => $2), false) AS old,
       coalesce((SELECT min(deleted_at) FROM file_deletions) < now() - make_interval(days => greatest($2, 1)), false)
       AS forgotten
