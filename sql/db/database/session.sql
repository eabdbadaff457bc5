-- Asks for what the program relies on, whatever the database, the role or the URL of the connection set: statements that
-- are decided by the rows that others have committed meanwhile, texts in which a backslash is a character, and no time
-- limits but those that the program sets. Not every version of PostgreSQL has all of the limits.
SELECT set_config(name, value, false)
FROM (VALUES ('default_transaction_isolation', 'read committed'),
             ('standard_conforming_strings', 'on'),
             ('statement_timeout', '0'),
             ('lock_timeout', '0'),
             ('transaction_timeout', '0'),
             ('idle_in_transaction_session_timeout', '0'),
             ('idle_session_timeout', '0')) relied_on (name, value)
JOIN pg_settings USING (name)
