-- Asks for what the program relies on, in a new session. PostgreSQL may have been told otherwise for the database, the
-- role or in the URL.
--
-- - Statements see what others have committed before them, and wait for locks instead of failing.
-- - A backslash in a text is a character.
-- - A day is 24 hours: in other time zones `interval '1 day'` has 23 or 25 of them twice a year.
-- - A search finds all there is.
-- - A prepared query keeps its plan if that is cheap, and PostgreSQL compiles no expressions: it would for lists, whose
--   branches look expensive although all but one are not run, and that takes longer than they do.
-- - No limit ends a migration, a backup, which leaves its transaction idle while it copies, or a connection of the
--   pool. Every query of the service has a limit of its own. Not every version of PostgreSQL has all of these.
SELECT set_config(name, value, false)
FROM (VALUES ('default_transaction_isolation', 'read committed'),
             ('standard_conforming_strings', 'on'),
             ('TimeZone', 'UTC'),
             ('gin_fuzzy_search_limit', '0'),
             ('plan_cache_mode', 'auto'),
             ('jit', 'off'),
             ('statement_timeout', '0'),
             ('lock_timeout', '0'),
             ('transaction_timeout', '0'),
             ('idle_in_transaction_session_timeout', '0'),
             ('idle_session_timeout', '0')) wanted (name, value)
WHERE current_setting(name, true) IS NOT NULL
