-- Collects the statistics that plans depend on, and removes what restore/renew has replaced.
VACUUM (ANALYZE)
