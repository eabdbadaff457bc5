-- Removes up to $3 audit events that are older than $1 days, or failures older than $2 days; returns how many. Several
-- processes may run this at once: SKIP LOCKED gives each of them other rows.
-- The setting lets the trigger audit_events_no_delete pass until the end of this transaction.
WITH allowed AS MATERIALIZED (
    SELECT set_config('cloakroom.removes_old_audit_events', 'on', true) AS setting
), expired AS MATERIALIZED (
    SELECT oldest.at, oldest.id
    FROM allowed
    CROSS JOIN unnest(enum_range(NULL::audit_action)) kind (action)
    CROSS JOIN (VALUES ('success'::audit_outcome, $1::integer), ('failure', $2)) ending (outcome, days)
    CROSS JOIN LATERAL (
        SELECT e.at, e.id FROM audit_events e
        WHERE e.action = kind.action AND e.outcome = ending.outcome
          AND e.at < now() - make_interval(days => ending.days)
        ORDER BY e.at, e.id LIMIT $3
        FOR UPDATE SKIP LOCKED
    ) oldest
    WHERE allowed.setting = 'on'
    LIMIT $3
), removed AS (
    DELETE FROM audit_events e USING expired WHERE e.at = expired.at AND e.id = expired.id RETURNING e.id
)
SELECT count(*) AS removed FROM removed
