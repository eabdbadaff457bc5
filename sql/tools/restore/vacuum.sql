-- Collects the statistics that plans depend on, and removes what tools/restore/renew has replaced.
VACUUM (ANALYZE)
