-- Removes up to $1 sign-ins by a provider whose states no cookie has any more; returns how many it removed. Several
-- processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH removed AS (
    DELETE FROM provider_sign_ins
    WHERE state_hash = ANY (ARRAY(
        SELECT state_hash FROM provider_sign_ins WHERE used_at < now() - interval '15 minutes'
        ORDER BY used_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING state_hash
)
SELECT count(*) AS removed FROM removed
