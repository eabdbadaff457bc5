-- Gives up to $1 deleted files up for good of a user who has more bytes of them than $2, the default, or than the
-- user's own quota if that is larger: what a deletion left. Returns how many users there were, 1 or 0. $3: the most
-- files likewise.
WITH owner AS MATERIALIZED (
    SELECT id, greatest(storage_quota, $2) AS most_bytes, least(greatest(file_quota, $3), 1e18::bigint) AS most_files
    FROM users WHERE deleted_bytes > 0 AND deleted_bytes > $2 AND deleted_bytes > coalesce(storage_quota, 0)
    LIMIT 1 FOR NO KEY UPDATE
)
-- One file more than there may be, because there is none to make room for; an own quota may be the greatest number.
SELECT count(make_room_for_deleted_file(id, 0, false, most_bytes, most_files + 1, $1)) AS removed FROM owner
