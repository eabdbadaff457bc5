-- Ends with an error that counts as one of a server that accepts no connections (57P03).
DO $$ BEGIN
    RAISE EXCEPTION 'this server was a primary before another one was promoted: its timeline is lower than one seen'
        USING ERRCODE = 'cannot_connect_now';
END $$
