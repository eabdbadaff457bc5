-- Replaces sealed secrets by the same ones under another key. $1: ids of accounts; $2: what each has; $3: what it gets.
-- One that was changed meanwhile stays. The rows are locked in the order of ids, so that two processes that start at
-- once do not deadlock. Returns how many it replaced.
WITH locked AS (
    SELECT users.id, given.resealed
    FROM users JOIN unnest($1::uuid[], $2::bytea[], $3::bytea[]) given (id, sealed, resealed)
      ON users.id = given.id AND second_factor_sealed = given.sealed
    ORDER BY users.id
    FOR NO KEY UPDATE OF users
), changed AS (
    UPDATE users SET second_factor_sealed = locked.resealed FROM locked WHERE users.id = locked.id
    RETURNING users.id
)
SELECT count(*) AS changed FROM changed
