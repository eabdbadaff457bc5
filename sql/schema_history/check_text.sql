-- Ends with an error if the database cannot hold Unicode, or if its server has no locale any more by which the schema
-- folds the case of texts: a copy of the data may have been moved to another machine.
DO $$
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'the database has the encoding %, and must have UTF8: make another one (createdb --encoding UTF8 --template template0)',
            getdatabaseencoding();
    ELSIF to_regproc('folded') IS NOT NULL THEN
        IF folded(chr(220)) <> chr(252) THEN
            RAISE invalid_parameter_value;
        END IF;
    END IF;
EXCEPTION WHEN invalid_parameter_value THEN
    RAISE EXCEPTION 'the machine of the database has no locale C.UTF-8, by which upper and lower case are compared: install it';
END $$
