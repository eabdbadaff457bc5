-- Indexes that PostgreSQL does not use, constraints that do not hold for all rows, and triggers that do not run, each
-- with its table, in the schema of the table files.
WITH own AS (
    SELECT c.oid, c.relname FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'files'::regclass)
)
SELECT 'index' AS kind, c.relname AS name, own.relname AS table_name
FROM pg_index i JOIN own ON own.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT (i.indisvalid AND i.indisready AND i.indislive)
UNION ALL
SELECT 'constraint', c.conname, own.relname
FROM pg_constraint c JOIN own ON own.oid = c.conrelid
WHERE NOT c.convalidated
UNION ALL
SELECT 'trigger', t.tgname, own.relname
FROM pg_trigger t JOIN own ON own.oid = t.tgrelid
WHERE t.tgenabled IN ('D', 'R')
ORDER BY kind, name
