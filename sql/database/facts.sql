-- Facts about the server, the database and this connection, for `cloakroom doctor`. `available_connections`
-- are those that may be open at once for a user who is no superuser, over all processes and databases of the server, or
-- fewer if the role or the database has a limit of its own. `settings_off` names the settings that are off and
-- without which a crash can lose acknowledged writes or damage data.
SELECT pg_encoding_to_char(pg_database.encoding) AS encoding,
       host(inet_server_addr()) || ':' || inet_server_port() AS address,
       pg_is_in_recovery() AS is_standby,
       current_setting('transaction_read_only')::boolean AS is_read_only,
       (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls_version,
       least(
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true)::int, 0),
           nullif(pg_database.datconnlimit, -1),
           nullif(pg_roles.rolconnlimit, -1)
       ) AS available_connections,
       (SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL) AS open_connections,
       ARRAY(
           SELECT name FROM pg_settings
           WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name
       ) AS settings_off,
       current_setting('data_checksums')::boolean AS has_checksums,
       CASE WHEN current_setting('synchronous_commit') NOT IN ('off', 'local')
           THEN current_setting('synchronous_standby_names') ELSE '' END AS awaited_standbys,
       (SELECT count(*) FROM pg_replication_slots WHERE NOT active) AS unused_slots,
       (SELECT extversion FROM pg_extension WHERE extname = 'pg_trgm') AS trigram_version,
       to_regclass('listed_users_search') IS NOT NULL AS has_search_index,
       (SELECT extversion FROM pg_extension WHERE extname = 'amcheck') AS amcheck_version
FROM pg_database, pg_roles
WHERE pg_database.datname = current_database() AND pg_roles.rolname = current_user
