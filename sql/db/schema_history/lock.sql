-- Waits for the advisory lock under which one process at a time migrates. It belongs to the session, so it ends with
-- the connection too. The key is the bytes "cloakroo".
SELECT pg_advisory_lock(7164223571444789103)
