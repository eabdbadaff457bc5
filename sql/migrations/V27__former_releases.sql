-- What only processes of former releases used, and names that were kept for them.
DROP VIEW storage;
DROP TABLE kept_contents;
DROP INDEX users_email_unfilled;
ALTER TABLE account_totals RENAME COLUMN month TO day;
ALTER TABLE file_totals RENAME COLUMN month TO day;
COMMENT ON COLUMN account_totals.day IS NULL;
COMMENT ON COLUMN file_totals.day IS NULL;
