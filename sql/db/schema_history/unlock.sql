-- Releases the lock that `lock.sql` took.
SELECT pg_advisory_unlock(7164223571444789103)
