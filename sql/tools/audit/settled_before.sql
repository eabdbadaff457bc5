-- The time before which no event is still to come, but for those that are over $1 seconds late. An event has the time
-- of its change, and is seen once its transaction is committed. A transaction that has written something has a
-- backend_xid until then, and its events are not older than it is. The event of a password reset has the time of the
-- request, which waits in a table until the service takes it.
SELECT least(
    clock_timestamp() - make_interval(secs => $1::float8),
    (SELECT min(xact_start) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()),
    (SELECT min(requested_at) FROM password_reset_requests)
) AS settled_before
