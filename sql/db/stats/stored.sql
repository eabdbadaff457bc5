-- The figures that the metrics take from the database: the bytes of all files and of deleted ones, and the state of the
-- outbox. Requests for password resets count as waiting mail, because it is not known yet whether an account has their
-- address. A message that is for later does not wait yet.
SELECT (SELECT coalesce(sum(used), 0)::bigint FROM storage_shards) AS bytes,
       (SELECT coalesce(sum(deleted_bytes), 0)::bigint FROM users WHERE deleted_bytes > 0) AS deleted,
       waiting.messages + requests.messages AS mail_waiting,
       (SELECT count(*) FROM outbox WHERE failed_at IS NOT NULL) AS mail_failed,
       coalesce(extract(epoch FROM now() - least(waiting.oldest, requests.oldest)), 0)::bigint AS mail_oldest_seconds
FROM (SELECT count(*) AS messages, min(created_at) AS oldest
      FROM outbox WHERE failed_at IS NULL AND created_at <= now()) waiting,
     (SELECT count(*) AS messages, min(requested_at) AS oldest FROM password_reset_requests) requests
