-- Those of the ids $1 of uploads that are none any more; on a standby none, because it may lack the newest.
SELECT one.id FROM unnest($1::uuid[]) AS one (id)
WHERE NOT pg_is_in_recovery() AND NOT EXISTS (SELECT FROM partial_uploads p WHERE p.id = one.id)
