-- Stores the installation id $1 in a database that has none.
INSERT INTO installation (id) VALUES ($1)
