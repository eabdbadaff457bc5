-- What all parts of the schema use. Many functions exist because a statement sees the database as it was when it began,
-- even after it has waited for a lock: a statement within a plpgsql function takes a new snapshot.

-- Of texts that are compared, this collation folds the case, and "C" decides the order, which is that of code points.
-- So the same names are taken and found in every database: lower() alone follows the rules of the database's locale.
-- This one, which glibc and musl have, makes one character of one; PostgreSQL 15 has no such collation of its own.
CREATE COLLATION by_character (provider = libc, locale = 'C.UTF-8');

-- A text with its case folded. The result has the collation of the argument, so columns are COLLATE "C". The body is an
-- expression, which is inlined, and of which no search path decides what it means.
CREATE FUNCTION folded(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower($1 COLLATE by_character);

-- Says which data directory belongs to this database: both hold the same random id, which the program makes at its
-- first start.
CREATE TABLE installation (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_is_only_check CHECK (is_only),
    id uuid NOT NULL
);

-- Removes up to `most` rows of a table in which the time `moment`, a column or an element of one, is over for longer than
-- `age`; returns how many. The program has the list of tables, so nothing in the text of
-- the statement comes from a client. Several processes may call this at once: SKIP LOCKED gives each of them other rows.
CREATE FUNCTION sweep(of_table regclass, moment text, age interval, most bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    removed bigint;
BEGIN
    EXECUTE format(
        'DELETE FROM %1$s WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM %1$s WHERE %2$s < now() - $1 LIMIT $2 FOR UPDATE SKIP LOCKED
         ))', of_table, moment) USING age, most;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;
