-- Stores a link to files $1 of user $2, to folder $3, or to send files to folder $12: two of the three are null. $4:
-- the version of the credentials that the request's sender was authenticated with, null if there is none; $5: id; $6:
-- hash of the token; $7: whether browsers show files; $8: lifetime in minutes; $9: the most live links of a user; $10,
-- $11: address and request id of the event; $13 to $16: of a link to send files by, the most files and bytes, the note,
-- and whether mail tells of files; $17: whether young accounts that registered themselves may not ask for files. No row
-- means that the user's account is no longer as it was. Otherwise the row says whether it may make the link, and
-- whether all of these files are the user's; if both is so and there is no id, there are too many links.
-- Locks are taken as by links/insert.sql, and for its reasons. A file that was deleted while this waited for that of
-- the user's row is none of the user's any more. The planner does not see the values, so it keeps its plan.
WITH wanted AS MATERIALIZED (
    SELECT $1::uuid[] AS files, $3::text AS folder, $12::text AS upload_to
), owner AS MATERIALIZED (
    SELECT id, is_self_registered AND created_at > now() - interval '7 days' AS is_young FROM users
    WHERE id = $2 AND credentials_version = coalesce($4, credentials_version) AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE
), file AS MATERIALIZED (
    SELECT files.id FROM files, owner
    WHERE files.id = ANY ((SELECT files FROM wanted)::uuid[]) AND files.user_id = owner.id
    FOR KEY SHARE OF files
), found AS (
    SELECT owner.id, files, folder, upload_to, NOT (upload_to IS NOT NULL AND is_young AND $17) AS may_ask,
           files IS NULL OR (SELECT count(*) FROM file) = cardinality(files) AS are_own
    FROM owner, wanted
), link AS (
    INSERT INTO file_links (id, files, folder, upload_to, user_id, token_hash, inline, expires_at, max_files, max_bytes,
                            received_files, received_bytes, note, notify)
    SELECT $5, files, folder, upload_to, found.id, $6, $7, now() + make_interval(mins => $8), $13, $14,
           CASE WHEN upload_to IS NOT NULL THEN 0 END, CASE WHEN upload_to IS NOT NULL THEN 0 END, $15, $16
    FROM found
    WHERE may_ask AND are_own AND has_room_for_file_link(found.id, NULL, $9, $9)
    RETURNING *
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.link_create', user_id, 'link', id, $10, $11,
           jsonb_strip_nulls(jsonb_build_object('link_id', id, 'expires_in_minutes', $8, 'inline', inline,
                                                'files', cardinality(files), 'folder', folder_path(folder),
                                                'upload_to', folder_path(upload_to)))
    FROM link
)
SELECT may_ask, are_own, link.id, link.created_at, link.expires_at, link.inline FROM found LEFT JOIN link ON true
