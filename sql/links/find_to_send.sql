-- The link to send files by with the token of hash $1, and the account of its owner. What uploads by it keep that come
-- in several requests counts as received. No row means that there is no such link, that it has expired, or that the
-- owner is deactivated or deleted.
SELECT l.id AS link_id, l.upload_to, l.note, l.expires_at, l.max_bytes, l.received_bytes + kept.bytes AS received_bytes,
       l.max_files - l.received_files - kept.files::int AS files_left,
       coalesce(owner.name, owner.username) AS sender, a.*
FROM file_links l JOIN users owner ON owner.id = l.user_id AND owner.is_active AND NOT owner.is_deleted,
     account(owner) a, reserved(owner.id, l.id) kept
WHERE l.token_hash = $1 AND l.expires_at > now() AND l.upload_to IS NOT NULL
