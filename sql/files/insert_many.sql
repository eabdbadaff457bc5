-- Records uploaded files that fit into all quotas, in one commit: what that and the triggers cost is shared by all of
-- them. $1 to $9 and $14 to $20, with an element for each file: ids; owners; filenames; content types; sizes in bytes;
-- hashes; descriptions; addresses and request ids of the events; idempotency keys and hashes of the requests, both null
-- for uploads without a key; whether all of a content is UTF-8 without NUL; folders; CRC-32 of contents; the links by
-- which strangers sent them, null for the owners' own; $20: the uploads of partial_uploads that they complete, null for
-- those that came in one request. $10, $11: the quotas of bytes and of files of an owner without quotas of its own;
-- $12: quota of bytes of the whole service; $13: that of young accounts that registered themselves. Returns a row for
-- each recorded file, and for each owner none of whose files is recorded one without an id. No row at all means that no
-- owner can be used, or that the rows of all of them are locked.
-- A file that is alone is recorded unless it exceeds a quota, its key was used within a day, or the user has too many
-- keys. The lock of the owner's row makes parallel uploads of one user wait for each other. Each then sees the totals
-- that the one before it left, to which the triggers on files add, so the quotas are exact.
-- Of several files only those are recorded that certainly fit, and nobody's file waits for another user's lock; the
-- caller tries the others again, each alone. An owner is passed over if its row is locked, or that of own_changes,
-- which the event of an upload changes, or if there is none yet. A file must fit after those of the same owner before
-- it. The files before it and it must together be small in the sense of has_storage_for, and if they do not fit into
-- the service's quota, none is recorded. If those of young accounts do not fit into theirs, none of these is.
-- A file that came by a link must fit into what that has left, too, and the link must be live. Its row is locked after
-- the owner's, and read as it is then. Its key is one of the link, not of the owner.
-- An upload that came in several requests is recorded once, because its row is marked here. What was reserved and
-- charged for it counts until then: nothing more is needed of it but, by a link, a file of the owner.
-- The half of young accounts is compared after the quota of the service, whose lock makes it exact near that quota.
-- The owner's row is always locked first, or two uploads could deadlock. Uploads of several users wait for each other
-- only near the quota of the service. In a queue of many uploads the last ones wait long for these locks although
-- nothing is wrong, so only the statement timeout limits that. A locked table, other than storage_shards, is met before
-- anything here runs, and still ends the statement. The subqueries around parameters hide their lengths from the
-- planner, which would otherwise plan anew for each upload.
WITH no_lock_timeout AS (
    SELECT set_config('lock_timeout', '0', true), cardinality($1::uuid[]) = 1 AS is_alone
), upload AS (
    SELECT *, (sum(more) OVER so_far)::bigint AS bytes, (sum(more) OVER (ORDER BY number))::bigint AS bytes_of_all,
           count(*) FILTER (WHERE partial_id IS NULL OR link_id IS NOT NULL) OVER so_far AS files
    FROM unnest((SELECT $1::uuid[]), $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
                $8::inet[], $9::uuid[], $14::text[], $15::bytea[], $16::boolean[], $17::text[],
                $18::integer[], $19::uuid[], $20::uuid[]) WITH ORDINALITY
         AS upload (id, user_id, filename, content_type, file_size, file_hash, description, address, request_id, key,
                    request_hash, is_utf8, folder, crc32, link_id, partial_id, number),
         LATERAL (SELECT CASE WHEN partial_id IS NULL THEN file_size ELSE 0 END AS more) new
    WINDOW so_far AS (PARTITION BY user_id ORDER BY number)
), owner AS (
    SELECT id, total_uploads, total_storage_used, storage_quota, file_quota,
           is_self_registered AND created_at > now() - interval '7 days' AS is_young
    FROM users
    WHERE id = ANY ((SELECT CASE WHEN is_alone THEN $2 ELSE unlocked_owners($2) END FROM no_lock_timeout)::uuid[])
      AND is_active AND NOT is_deleted FOR NO KEY UPDATE
), link AS MATERIALIZED (
    SELECT l.id, user_id AS owner_id, expires_at, max_files - received_files AS files_left,
           max_bytes - received_bytes AS bytes_left
    FROM file_links l JOIN owner ON owner.id = l.user_id
    WHERE l.id = ANY ($19) AND l.expires_at > now()
    FOR NO KEY UPDATE OF l
), partial AS MATERIALIZED (
    SELECT p.id FROM unnest($20) one JOIN partial_uploads p ON p.id = one JOIN owner ON owner.id = user_id
    WHERE completed_at IS NULL AND expires_at > now()
    FOR NO KEY UPDATE OF p
), kept AS MATERIALIZED (
    SELECT owner.id, NULL::uuid AS link, r.* FROM owner, reserved(owner.id, NULL) r
    UNION ALL
    SELECT owner_id, link.id, r.* FROM link, reserved(owner_id, link.id) r
), fitting AS MATERIALIZED (
    SELECT upload.*, is_young, coalesce(link_id, user_id) AS sender_id
    FROM upload JOIN owner ON owner.id = user_id JOIN kept own ON own.id = user_id AND own.link IS NULL
    LEFT JOIN link ON link.id = link_id LEFT JOIN kept ON kept.link = link_id
    WHERE total_storage_used + own.bytes + upload.bytes <= coalesce(storage_quota, $10)
      AND total_uploads + own.files + upload.files <= coalesce(file_quota, $11)
      AND ((SELECT is_alone FROM no_lock_timeout)
           OR bytes_of_all <= $12::bigint / 8 / current_setting('max_connections')::bigint)
      AND (link_id IS NULL OR CASE WHEN partial_id IS NOT NULL THEN link.id IS NOT NULL
                                   ELSE kept.bytes + upload.bytes <= bytes_left AND kept.bytes < bytes_left
                                        AND kept.files + upload.files <= files_left END)
      AND (partial_id IS NULL OR partial_id IN (SELECT partial.id FROM partial))
      AND (key IS NULL OR count_idempotency_keys(coalesce(link_id, user_id)) + upload.files <= 10000)
), room AS MATERIALIZED (
    SELECT has_storage_for(more, $12) AS is_left
    FROM (SELECT sum(more)::bigint AS more FROM fitting) files
), room_of_young AS MATERIALIZED (
    SELECT young_disk_usage(more, $13) + more <= $13 AS is_left
    FROM (SELECT sum(CASE WHEN partial_id IS NULL THEN disk_usage(file_size, description) ELSE 0 END)::bigint AS more
          FROM fitting, room WHERE is_young AND room.is_left) young
), admitted AS MATERIALIZED (
    SELECT fitting.* FROM fitting, room, room_of_young
    WHERE room.is_left AND (NOT is_young OR room_of_young.is_left)
), keyed AS (
    INSERT INTO idempotency_keys AS known (sender_id, key, file_id, request_hash, file_size)
    SELECT DISTINCT ON (sender_id, key) sender_id, key, id, request_hash, file_size
    FROM admitted WHERE key IS NOT NULL ORDER BY sender_id, key, number
    ON CONFLICT (sender_id, key) DO UPDATE
    SET file_id = excluded.file_id, request_hash = excluded.request_hash, file_size = excluded.file_size,
        created_at = excluded.created_at
    WHERE known.created_at <= now() - interval '1 day'
    RETURNING file_id
), file AS (
    INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path, file_hash,
                       description, is_utf8, crc32, received_by, is_as_received)
    SELECT id, user_id, folder, filename, filename, content_type, file_size, 'files/' || id, file_hash, description,
           is_utf8, crc32, link_id, link_id IS NOT NULL
    FROM admitted WHERE key IS NULL OR id IN (SELECT file_id FROM keyed)
    RETURNING *
), received AS (
    UPDATE file_links l
    SET received_files = received_files + more.files, received_bytes = received_bytes + more.bytes,
        last_used_at = date_trunc('hour', now(), 'UTC')
    FROM (SELECT received_by, count(*) AS files, sum(file_size)::bigint AS bytes FROM file GROUP BY received_by) more
    WHERE l.id = more.received_by
), completed AS (
    UPDATE partial_uploads p
    SET completed_at = now(), expires_at = least(now() + interval '1 day', link.expires_at), state = NULL
    FROM file JOIN admitted USING (id) LEFT JOIN link ON link.id = link_id WHERE p.id = partial_id
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT (CASE WHEN link_id IS NULL THEN 'file.upload' ELSE 'file.receive' END)::audit_action,
           CASE WHEN link_id IS NULL THEN user_id END, 'file', id, address, request_id,
           jsonb_strip_nulls(jsonb_build_object(
               'file_size', file.file_size, 'link_id', link_id,
               'owner_id', CASE WHEN link_id IS NOT NULL THEN user_id END
           ))
    FROM file JOIN upload USING (id, user_id)
)
SELECT file.id, user_id, file.folder, filename, original_filename, content_type, file_size, file_hash, description,
       upload_date, updated_at, is_public, version, received_by
FROM owner LEFT JOIN file ON user_id = owner.id
