-- What happened to the files of user $1 after a cursor, each file once with its latest state, in the order of the
-- latest changes. $2, $3: number of the last change that the client has seen, and id of its file; $4: number up to
-- which it need not be told of deletions, because it had seen no file then, or null if it has seen nothing yet; $5:
-- most rows; $6: after so many bytes of names and descriptions no other row follows. All rows have the number of rows
-- that there would be without these limits, but no more than one beyond $5, the name of the history to which the
-- numbers belong, the number of the user's latest change,
-- and the greatest number of a deletion that is forgotten. If there is no change, one row has only these. No row: there
-- is no such user. The history is the installation, the database (its server, itself and a table of it, which all have
-- another identifier after a dump was restored), and the timeline of its server: a restored database and a promoted
-- standby, which may lack what was committed last, give numbers anew. The timeline is that of the server's present WAL
-- file, because pg_control names a new one only after the next checkpoint. A standby has none, and the history is null.
WITH owner AS MATERIALIZED (
    SELECT u.id, u.forgotten_change,
           greatest(u.forgotten_change,
                    (SELECT max(change_number) FROM files WHERE user_id = u.id),
                    (SELECT max(change_number) FROM file_deletions WHERE user_id = u.id)) AS latest_change
    FROM users u WHERE u.id = $1 AND NOT u.is_deleted
), change AS MATERIALIZED (
    (SELECT change_number, id AS file_id, false AS is_deleted, updated_at AS at,
            octet_length(folder || filename || original_filename || coalesce(description, '')) AS texts
     FROM files
     WHERE user_id = $1 AND (change_number, id) > ($2::bigint, $3::uuid)
     ORDER BY change_number, id LIMIT (SELECT $5::bigint + 1))
    UNION ALL
    (SELECT change_number, file_id, true, deleted_at, 0 FROM file_deletions
     WHERE user_id = $1 AND change_number > greatest($2, (SELECT coalesce($4, latest_change) FROM owner))
     ORDER BY change_number LIMIT (SELECT $5 + 1))
    ORDER BY change_number, file_id LIMIT (SELECT $5 + 1)
), page AS MATERIALIZED (
    SELECT *, count(*) OVER () AS found, row_number() OVER earlier AS place, sum(texts) OVER earlier - texts AS before
    FROM change WINDOW earlier AS (ORDER BY change_number, file_id)
)
SELECT CASE WHEN NOT pg_is_in_recovery()
            THEN left(md5(concat_ws(' ', installation.id,
                                    (SELECT system_identifier FROM pg_control_system()),
                                    (SELECT oid FROM pg_database WHERE datname = current_database()),
                                    'files'::regclass::oid,
                                    left(pg_walfile_name(pg_current_wal_lsn()), 8))), 16) END AS history,
       owner.latest_change, owner.forgotten_change, coalesce(change.found, 0) AS found, change.change_number,
       change.file_id, change.is_deleted, change.at,
       f.id, f.user_id, f.folder, f.filename, f.original_filename, f.content_type, f.file_size, f.file_hash,
       f.description, f.upload_date, f.updated_at, f.is_public, f.version, f.received_by
FROM owner CROSS JOIN installation
LEFT JOIN page change ON change.place <= $5 AND change.before <= $6::bigint
LEFT JOIN files f ON f.id = change.file_id
ORDER BY change.change_number, change.file_id
