-- Any answer shows that the database is reachable and the connection works. The setting is on in a standby too.
SELECT current_setting('transaction_read_only')::boolean AS is_read_only
