-- Ends with an error if the database cannot hold Unicode, or if its server has no locale any more by which the schema
-- folds the case of texts: a copy of the data may have been moved to another machine.
DO $$
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'the encoding of the database is %, and must be UTF8: make another one, %',
            getdatabaseencoding(), 'with createdb --encoding UTF8 --template template0';
    ELSIF to_regproc('folded') IS NOT NULL THEN
        IF folded(chr(220)) <> chr(252) THEN
            RAISE invalid_parameter_value;
        END IF;
    END IF;
EXCEPTION WHEN invalid_parameter_value THEN
    RAISE EXCEPTION 'the machine of the database lacks the locale C.UTF-8, by which case is folded: install it';
END $$
