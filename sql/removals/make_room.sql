-- Gives up to $1 deleted files up for good if all together have more than $2 bytes: the longest ago deleted of the user
-- who has the most bytes, until all fit or another user has more. Where many have about as many, a sixteenth of
-- what is too much goes at a time, so that it takes few turns. Their contents are listed to be removed at once. Returns
-- how many.
WITH excess AS MATERIALIZED (
    SELECT sum(deleted_bytes) - $2::bigint AS bytes FROM users WHERE deleted_bytes > 0
), most AS MATERIALIZED (
    SELECT id, deleted_bytes - lead(deleted_bytes, 1, 0::bigint) OVER (ORDER BY deleted_bytes DESC) AS ahead
    FROM (SELECT id, deleted_bytes FROM users WHERE deleted_bytes > 0 ORDER BY deleted_bytes DESC LIMIT 2) two
    ORDER BY deleted_bytes DESC LIMIT 1
), owner AS MATERIALIZED (
    SELECT users.id FROM users JOIN most USING (id) JOIN excess ON excess.bytes > 0 FOR NO KEY UPDATE OF users
), gone AS (
    DELETE FROM deleted_files WHERE id = ANY (ARRAY(
        SELECT old.id
        FROM (SELECT d.id, sum(file_size) OVER (ORDER BY deleted_at, d.id) - file_size AS before
              FROM deleted_files d JOIN owner ON owner.id = user_id
              ORDER BY deleted_at, d.id LIMIT (SELECT $1::bigint)) old, excess, most
        WHERE before < excess.bytes AND before <= greatest(ahead, excess.bytes / 16)
    ))
    RETURNING id
), listed AS (
    INSERT INTO deleted_contents (id, deleted_at) SELECT id, '-infinity' FROM gone
    ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
)
SELECT count(*) AS removed FROM gone
