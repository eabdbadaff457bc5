-- Begins the transaction of a backup, which sees the database as it is at its first query.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
