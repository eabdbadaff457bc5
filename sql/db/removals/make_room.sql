-- Gives up to $1 deleted files up for good if all together have more than $2 bytes. First go those of young accounts
-- that registered themselves, the longest ago deleted first: anybody can make such accounts. Then the longest ago
-- deleted of a user who has the most bytes: of those who have at least half as many as anybody, the one who deleted last,
-- until that one has fewer. So nobody pays for others who come later with about as many, nor has less than half of what
-- others keep. A sixteenth of what is too much goes at a time, if that is more, so that it takes few turns. Returns how
-- many. Those of a user whose row is locked wait for another time.
-- Of each young account it reads no more than a hundred of each kind in their order, and takes none after the last of
-- a hundred, because that account may have others before them. So it takes a hundred at least, if there are as many.
WITH excess AS MATERIALIZED (
    SELECT sum(deleted_bytes) - $2::bigint AS bytes, max(deleted_bytes) / 2 AS half FROM users WHERE deleted_bytes > 0
), young AS MATERIALIZED (
    SELECT users.id, 100::bigint AS rows, excess.bytes FROM users JOIN excess ON excess.bytes > 0
    WHERE is_self_registered AND created_at > now() - interval '7 days' AND deleted_bytes > 0
), large AS MATERIALIZED (
    SELECT users.id, greatest(deleted_bytes - half, excess.bytes / 16) AS bytes
    FROM users JOIN excess ON excess.bytes > 0 AND deleted_bytes >= half
    WHERE deleted_bytes > 0 AND NOT EXISTS (SELECT FROM young)
    ORDER BY deleted_bytes DESC LIMIT 100
), most AS MATERIALIZED (
    SELECT id, $1::bigint AS rows, bytes FROM large
    ORDER BY greatest((SELECT max(deleted_at) FROM deleted_files WHERE user_id = large.id AND was_young),
                      (SELECT max(deleted_at) FROM deleted_files WHERE user_id = large.id AND NOT was_young))
             DESC NULLS LAST LIMIT 1
), old AS MATERIALIZED (
    SELECT one.*, candidate.id AS user_id, candidate.bytes
    FROM (TABLE young UNION ALL TABLE most) candidate, (VALUES (true), (false)) kind (was_young), LATERAL (
        SELECT id, file_size, deleted_at, row_number() OVER (ORDER BY deleted_at, id) = candidate.rows AS is_last
        FROM deleted_files d WHERE user_id = candidate.id AND d.was_young = kind.was_young
        ORDER BY deleted_at, id LIMIT candidate.rows
    ) one
), next AS MATERIALIZED (
    SELECT id, user_id, bytes, sum(file_size) OVER (ORDER BY deleted_at, id) - file_size AS before
    FROM old WHERE deleted_at <= coalesce((SELECT min(deleted_at) FROM old WHERE is_last), 'infinity')
    ORDER BY deleted_at, id LIMIT (SELECT $1)
), owner AS MATERIALIZED (
    SELECT id FROM users WHERE id IN (SELECT user_id FROM next) FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM deleted_files WHERE id = ANY (ARRAY(
        SELECT next.id FROM next JOIN owner ON owner.id = user_id, excess
        WHERE before < excess.bytes AND before <= next.bytes
    ))
    RETURNING id, user_id, file_size
), listed AS (
    INSERT INTO deleted_contents (id, deleted_at, user_id, file_size)
    SELECT id, '-infinity', user_id, file_size FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
)
SELECT count(*) AS removed FROM gone
