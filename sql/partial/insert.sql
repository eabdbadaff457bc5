-- Begins an upload of user $1, or by link $2 from network $3: its id $4 and that of the file to be, $5; folder,
-- filename, declared type, description and SHA-256, $6 to $10; its length $11, which is reserved of the quotas of the
-- user ($12 bytes and $13 files unless it has its own) or of the link; $14: most uploads of these at once. Returns
-- whether it fits, whether there are too many, which have ended for it, and when it expires. No row means that the user
-- is not usable, or that the link is not live.
WITH owner AS MATERIALIZED (
    SELECT id, coalesce(storage_quota, $12) - total_storage_used AS bytes,
           coalesce(file_quota, $13) - total_uploads AS files
    FROM users WHERE id = $1 AND is_active AND NOT is_deleted FOR NO KEY UPDATE
), link AS MATERIALIZED (
    SELECT l.id, expires_at, max_bytes - received_bytes AS bytes, max_files - received_files AS files
    FROM file_links l JOIN owner ON owner.id = user_id
    WHERE l.id = $2 AND expires_at > now() AND upload_to IS NOT NULL FOR NO KEY UPDATE OF l
), room AS MATERIALIZED (
    SELECT room.* FROM owner LEFT JOIN link ON true,
         make_room_for_partial_upload(owner.id, $2, $3, $11, coalesce(link.bytes, owner.bytes),
                                      coalesce(link.files, owner.files), $14) room
    WHERE $2::uuid IS NULL OR link.id IS NOT NULL
), new AS (
    INSERT INTO partial_uploads (id, file_id, user_id, link_id, network, folder, filename, declared_type, description,
                                 sha256, file_size, expires_at)
    SELECT $4, $5, $1, $2, $3, $6, $7, $8, $9, $10, $11, least(now() + interval '1 hour', link.expires_at)
    FROM room LEFT JOIN link ON true WHERE is_left AND NOT is_too_many
    RETURNING expires_at
)
SELECT is_left, is_too_many, ended, expires_at FROM room LEFT JOIN new ON true
