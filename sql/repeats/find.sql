-- What user or link $1 has recorded with key $2 within a day, if anything: without that, file_id is null. If it has as
-- many keys as one may have, retry_after is the seconds until the oldest of them is over.
SELECT known.file_id, known.request_hash, known.file_size, known.created_at, (
    SELECT CASE WHEN count(*) >= 10000
                THEN greatest(1, ceil(extract(epoch FROM min(created_at) + interval '1 day' - now())))::bigint END
    FROM idempotency_keys WHERE sender_id = $1 AND created_at > now() - interval '1 day'
) AS retry_after
FROM (VALUES (1)) one LEFT JOIN idempotency_keys known
ON sender_id = $1 AND key = $2 AND created_at > now() - interval '1 day'
