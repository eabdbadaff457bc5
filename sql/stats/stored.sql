-- What the metrics report about the contents of the database.
SELECT (SELECT used FROM storage) AS bytes,
       (SELECT count(*) FROM password_reset_requests) AS waiting_resets
