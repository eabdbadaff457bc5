-- Makes a change that needs a page of the disk, and takes it back: a table begins with a new page, which is where those
-- of the database are. A role that may make no temporary table tries none.
DO $$ BEGIN
    PERFORM set_config('temp_tablespaces', '', true);
    IF has_database_privilege(current_database(), 'TEMPORARY') THEN
        CREATE TEMPORARY TABLE cloakroom_page AS SELECT 1 AS number;
    END IF;
    RAISE 'taken back';
EXCEPTION WHEN raise_exception THEN
END $$
