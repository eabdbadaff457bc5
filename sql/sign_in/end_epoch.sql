-- Marks up to $1 sessions of an epoch that is over as ended, which they are already, so that they keep no personal
-- data. An epoch is forgotten with its last ones. Returns how many sessions this has marked, and epochs it has looked
-- at. Several processes may run this at once: SKIP LOCKED gives each of them another epoch.
WITH next AS (
    SELECT user_id, epoch FROM ended_epochs LIMIT 1 FOR UPDATE SKIP LOCKED
), ended AS (
    UPDATE sessions SET ended_at = now()
    WHERE id = ANY (ARRAY(
        SELECT s.id FROM sessions s JOIN next USING (user_id, epoch) WHERE s.ended_at IS NULL LIMIT $1
    ))
    RETURNING id
), forgotten AS (
    DELETE FROM ended_epochs e USING next
    WHERE e.user_id = next.user_id AND e.epoch = next.epoch AND (SELECT count(*) FROM ended) < $1
)
SELECT (SELECT count(*) FROM next) + (SELECT count(*) FROM ended) AS changed
