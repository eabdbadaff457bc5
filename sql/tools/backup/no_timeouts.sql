-- Turns off the server's limits that would end a backup, which takes long and leaves its transaction idle while it
-- copies. Not every version has all of them. The wait for locks is limited instead.
SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN '60s' ELSE '0' END, false)
FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout',
               'idle_in_transaction_session_timeout', 'idle_session_timeout')
