-- Ends the transaction of a backup. Fails if the connection was lost, and its locks with it.
COMMIT
