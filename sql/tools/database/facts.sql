-- What `cloakroom doctor` asks about the server, and whether the role of the connection may change rows or, in an empty
-- database, make tables.
SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
       current_user::text AS role,
       pg_is_in_recovery() AS is_standby,
       coalesce(
           has_table_privilege(to_regclass('users'), 'UPDATE'),
           has_schema_privilege(current_schema(), 'CREATE'),
           false
       ) AS may_change
