-- What the metrics say of the database's contents.
SELECT (SELECT used FROM storage), (SELECT count(*) FROM password_reset_requests)
