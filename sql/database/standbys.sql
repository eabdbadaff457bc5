-- The standbys that are connected to this server, which must be no standby itself: their name, what they do
-- (`streaming` if all is well), whether commits wait for them (`sync`, `quorum`), and how many bytes they have not
-- applied yet. All but the name are null if the user may not see them, which takes the role `pg_monitor`.
SELECT application_name AS name, state, sync_state,
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint AS bytes_behind
FROM pg_stat_replication ORDER BY application_name, pid
