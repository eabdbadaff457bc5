-- Any answer shows that the database is reachable and the connection works.
SELECT 1
