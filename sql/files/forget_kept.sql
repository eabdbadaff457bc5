-- Forgets contents that a backup kept and that are gone by now. Runs after a sweep that has moved all contents without
-- a record that are over an hour old.
DELETE FROM kept_contents WHERE kept_at < now() - interval '1 day'
