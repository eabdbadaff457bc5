-- The totals of accounts and files have a row for each day (UTC), so that it can be shown what came when. The column
-- keeps the name `month`, and sums since the beginning of a month stay right, so processes of the former release can go
-- on. stats/fold.sql replaces the days of more than a year ago by their months.
-- Nothing may change between the count and the triggers, and no process of the former release may fold rows that are
-- deleted here: it would add their sums again. This waits for the uploads and deletions that run, and takes five seconds
-- for a million files.
LOCK TABLE files, listed_users, account_totals, file_totals IN EXCLUSIVE MODE;
DELETE FROM account_totals;
INSERT INTO account_totals
SELECT (created_at AT TIME ZONE 'UTC')::date, role, is_active, count(*) FROM listed_users GROUP BY 1, 2, 3;
DELETE FROM file_totals;
INSERT INTO file_totals
SELECT (upload_date AT TIME ZONE 'UTC')::date, count(*), sum(file_size) FROM files GROUP BY 1;
COMMENT ON COLUMN account_totals.month IS 'A day (UTC), or the first day of a month that was folded.';
COMMENT ON COLUMN file_totals.month IS 'A day (UTC), or the first day of a month that was folded.';

CREATE OR REPLACE FUNCTION total_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_totals
    SELECT (created_at AT TIME ZONE 'UTC')::date, role, is_active,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*)
    FROM changed GROUP BY 1, 2, 3;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION total_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO file_totals
    SELECT (upload_date AT TIME ZONE 'UTC')::date,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*),
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(file_size)
    FROM changed GROUP BY 1;
    RETURN NULL;
END
$$;
