-- Uses the state with hash $1. is_new: it was not used before; is_full: nothing is stored, because 100,000 states were
-- used lately. The rows must outlast the cookies, without which no state gets here.
WITH room AS MATERIALIZED (
    SELECT count(*) >= 100000 AS is_full FROM (SELECT FROM provider_sign_ins LIMIT 100000) AS present
), used AS (
    INSERT INTO provider_sign_ins (state_hash) SELECT $1 FROM room WHERE NOT is_full
    ON CONFLICT DO NOTHING
    RETURNING state_hash
)
SELECT is_full, EXISTS (SELECT FROM used) AS is_new FROM room
