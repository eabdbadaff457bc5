-- Forgets the contents $1, which are gone; returns a row for each. Those in $2, which could not be removed, and those
-- of a user whose row is locked, db/removals/contents, with the same number of days, $3, finds again after a minute.
-- The arrays are hidden from the planner, as in request/find_live.
WITH gone AS MATERIALIZED (
    SELECT id, user_id FROM deleted_contents WHERE id = ANY ((SELECT $1::uuid[])::uuid[])
), owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = ANY (ARRAY(SELECT user_id FROM gone)) FOR NO KEY UPDATE SKIP LOCKED
), removed AS MATERIALIZED (
    SELECT id FROM gone
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = user_id AND u.id NOT IN (SELECT owner.id FROM owner))
), postponed AS (
    UPDATE deleted_contents SET deleted_at = now() - make_interval(days => $3, mins => -1)
    WHERE id = ANY ((SELECT $1 || $2::uuid[])::uuid[]) AND id NOT IN (SELECT removed.id FROM removed)
)
DELETE FROM deleted_contents WHERE id = ANY (ARRAY(SELECT id FROM removed)) RETURNING id
