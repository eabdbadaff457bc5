-- How many accounts and files there are, so that nobody counts a million rows: the sum of these rows, by the calendar
-- month (UTC) of creation or upload. Triggers only add rows, with negative numbers for what is gone, so that no
-- transaction waits for another one's, and stats/fold.sql replaces the rows of a month by their sum. A statement sees
-- the rows of the transactions whose changes it sees, so the sums are exact.
CREATE TABLE account_totals (
    month date NOT NULL,
    role text NOT NULL,
    is_active boolean NOT NULL,
    accounts bigint NOT NULL
);

-- All files that have a record, also those of deleted users, whose records the program removes later.
CREATE TABLE file_totals (
    month date NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL
);

-- Nothing may change between the count and the triggers. With the indexes below it takes five seconds for a million
-- files. This waits for the uploads and deletions that run. It does not lock users, which they lock as well, in either
-- order.
LOCK TABLE files, listed_users IN EXCLUSIVE MODE;
INSERT INTO account_totals
SELECT date_trunc('month', created_at AT TIME ZONE 'UTC')::date, role, is_active, count(*)
FROM listed_users GROUP BY 1, 2, 3;
INSERT INTO file_totals
SELECT date_trunc('month', upload_date AT TIME ZONE 'UTC')::date, count(*), sum(file_size) FROM files GROUP BY 1;

-- Accounts are counted when they enter or leave the lists, and when a change of theirs makes them do both.
CREATE FUNCTION total_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_totals
    SELECT date_trunc('month', created_at AT TIME ZONE 'UTC')::date, role, is_active,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*)
    FROM changed GROUP BY 1, 2, 3;
    RETURN NULL;
END
$$;

CREATE TRIGGER listed_users_added AFTER INSERT ON listed_users REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_accounts();
CREATE TRIGGER listed_users_removed AFTER DELETE ON listed_users REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_accounts();

-- A file keeps its date and its size for as long as it has a record.
CREATE FUNCTION total_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO file_totals
    SELECT date_trunc('month', upload_date AT TIME ZONE 'UTC')::date,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*),
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(file_size)
    FROM changed GROUP BY 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER files_total_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_files();
CREATE TRIGGER files_total_removed AFTER DELETE ON files REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION total_files();

-- The other orders of a user's files, and how many there are of a type.
CREATE INDEX files_name ON files (user_id, lower(filename), id);
CREATE INDEX files_size ON files (user_id, file_size, id);
CREATE INDEX files_type ON files (user_id, content_type);
