-- Stores a link to file $1 of user $2. $3: the version of the credentials that the request's sender was authenticated
-- with, null if there is none; $4: id; $5: hash of the token; $6: whether browsers show the file; $7: lifetime in
-- minutes; $8, $9: the most live links of a user and of a file; $10, $11: address and request id of the event. No row
-- means that there is no such file, or that its owner is deleted. Otherwise the row says who the owner is, whether the
-- user's account is still as it was, and whether the file is still there; if all is well and there is no id, there are
-- too many links. Links that have expired do not count.
-- The lock of the user's row makes parallel requests of a user wait for each other, and for a change of the password,
-- which ends all links: otherwise somebody with the old password could store one just after that. It is taken before
-- that of the file, as by a deletion of the file.
WITH owner AS (
    SELECT id FROM users
    WHERE id = $2 AND credentials_version = coalesce($3, credentials_version) AND is_active AND NOT is_deleted
    FOR NO KEY UPDATE
), file AS (
    SELECT files.id, files.user_id FROM files, owner WHERE files.id = $1 AND files.user_id = owner.id
    FOR KEY SHARE OF files
), link AS (
    INSERT INTO file_links (id, file_id, user_id, token_hash, inline, expires_at)
    SELECT $4, id, user_id, $5, $6, now() + make_interval(mins => $7) FROM file
    WHERE has_room_for_file_link(user_id, id, $8, $9)
    RETURNING *
), event AS (
    INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
    SELECT 'file.link_create', user_id, 'file', file_id, $10, $11,
           jsonb_build_object('link_id', id, 'expires_in_minutes', $7, 'inline', inline)
    FROM link
)
SELECT found.user_id AS owner_id, owner.id IS NOT NULL AS is_unchanged, file.id IS NOT NULL AS is_there,
       link.id, link.created_at, link.expires_at, link.inline, found.filename
FROM files found JOIN users u ON u.id = found.user_id AND NOT u.is_deleted
LEFT JOIN owner ON true LEFT JOIN file ON true LEFT JOIN link ON true
WHERE found.id = $1
