-- What came on each of the last $1 days (UTC), today included, the oldest first: accounts and files that are still
-- there, from the totals, and events of the audit log, each kind from a range of an index. An event that stands
-- for several has their number in its details; those are few, and have an index of their own, so what they add to one
-- event is added apart. Sign-ins that lack only the code of a second factor are no refusals. Planned each time, for the
-- length of the range. A day of UTC has 24 hours, and a day of the connection's time zone may have others.
WITH counts AS MATERIALIZED (
    -- Materialized, because the condition on the day would be evaluated for each event otherwise.
    SELECT day, accounts AS users, 0 AS files, 0 AS bytes, 0 AS sign_ins, 0 AS refusals
    FROM account_totals
    UNION ALL
    SELECT day, 0, files, bytes, 0, 0 FROM file_totals
    UNION ALL
    -- Files of deleted users whose records are still to be removed.
    SELECT (upload_date AT TIME ZONE 'UTC')::date, 0, -1, -file_size, 0, 0
    FROM pending_removals JOIN files USING (user_id)
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, 0, 0, count(*), 0 FROM audit_events
    WHERE action = 'auth.login' AND outcome = 'success'
      AND at >= date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * ($1::bigint::int - 1)) GROUP BY 1
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, count(*) FROM audit_events
    WHERE action = 'auth.login' AND outcome = 'failure'
      AND at >= date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * ($1::bigint::int - 1)) GROUP BY 1
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, -count(*) FROM audit_events
    WHERE details ->> 'reason' = 'second_factor_required' AND action = 'auth.login' AND outcome = 'failure'
      AND at >= date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * ($1::bigint::int - 1)) GROUP BY 1
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, count(*) FROM audit_events
    WHERE action = 'access.denied' AND outcome = 'failure'
      AND at >= date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * ($1::bigint::int - 1)) GROUP BY 1
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, (details ->> 'count')::bigint - 1 FROM audit_events
    WHERE details ? 'count' AND action IN ('auth.login', 'access.denied') AND outcome = 'failure'
      AND details ->> 'reason' IS DISTINCT FROM 'second_factor_required'
      AND at >= date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * ($1::bigint::int - 1))
    UNION ALL
    -- Days without anything.
    SELECT (now() AT TIME ZONE 'UTC')::date - n, 0, 0, 0, 0, 0 FROM generate_series(0, $1::bigint::int - 1) n
)
SELECT to_char(day, 'YYYY-MM-DD') AS date, sum(users)::bigint AS users, sum(files)::bigint AS files,
       sum(bytes)::bigint AS bytes, sum(sign_ins)::bigint AS sign_ins, sum(refusals)::bigint AS refusals
FROM counts
WHERE day BETWEEN (now() AT TIME ZONE 'UTC')::date - ($1::bigint::int - 1) AND (now() AT TIME ZONE 'UTC')::date
GROUP BY day
ORDER BY day
