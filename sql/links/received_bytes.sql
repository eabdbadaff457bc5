-- How many bytes came by link $1, with what uploads by it keep. No row means that there is no such link, that it has
-- expired, or that its owner is deactivated or deleted.
SELECT received_bytes + kept.bytes AS bytes
FROM file_links l JOIN users owner ON owner.id = l.user_id AND owner.is_active AND NOT owner.is_deleted,
     reserved(owner.id, l.id) kept
WHERE l.id = $1 AND l.expires_at > now()
