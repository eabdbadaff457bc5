-- Stores a link to files $1 of user $2, or to folder $3: one of the two is null. $4: the version of the credentials
-- that the request's sender was authenticated with, null if there is none; $5: id; $6: hash of the token; $7: whether
-- browsers show files; $8: lifetime in minutes; $9: the most live links of a user; $10, $11: address and request id of
-- the event. No row means that the user's account is no longer as it was. Otherwise the row says whether all of these
-- files are the user's; if they are and there is no id, there are too many links.
-- Locks are taken as by links/insert.sql, and for its reasons. A file that was deleted while this waited for that of
-- the user's row is none of the user's any more. The planner does not see the values, so it keeps its plan.
WITH wanted AS MATERIALIZED (
    SELECT $1::uuid[] AS files, $3::text AS folder
), owner AS MATERIALIZED (
    SELECT id FROM users
    WHERE id = $2 AND credentials_version = coalesce($4, credentials_version) AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE
), file AS MATERIALIZED (
    SELECT files.id FROM files, owner
    WHERE files.id = ANY ((SELECT files FROM wanted)::uuid[]) AND files.user_id = owner.id
    FOR KEY SHARE OF files
), found AS (
    SELECT owner.id, files, folder, files IS NULL OR (SELECT count(*) FROM file) = cardinality(files) AS are_own
    FROM owner, wanted
), link AS (
    INSERT INTO file_links (id, files, folder, user_id, token_hash, inline, expires_at)
    SELECT $5, files, folder, found.id, $6, $7, now() + make_interval(mins => $8) FROM found
    WHERE are_own AND has_room_for_file_link(found.id, NULL, $9, 1)
    RETURNING *
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.link_create', user_id, 'link', id, $10, $11,
           jsonb_strip_nulls(jsonb_build_object('link_id', id, 'expires_in_minutes', $8, 'inline', inline,
                                                'files', cardinality(files), 'folder', folder_path(folder)))
    FROM link
)
SELECT are_own, link.id, link.created_at, link.expires_at, link.inline FROM found LEFT JOIN link ON true
