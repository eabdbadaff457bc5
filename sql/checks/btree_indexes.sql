-- The B-tree indexes in the schema of the table files that PostgreSQL uses, the smallest first.
SELECT c.oid, c.relname AS name
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam
WHERE am.amname = 'btree' AND c.relkind = 'i' AND i.indisvalid AND i.indisready AND i.indislive
  AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'files'::regclass)
ORDER BY pg_relation_size(c.oid), c.relname
