-- Replaces up to $1 rows of each table of totals by their sums, if there are more than 4,000 rows, so that reading the
-- totals stays cheap. A sum is that of a day, or of a month if that is long enough ago for nobody to ask for its days:
-- ten years have 2,200 sums of accounts. Returns how many rows fewer there are. A row that another process replaces at
-- the same time is gone when this statement gets to it, and so is not among those that it adds up.
WITH days AS (
    SELECT date_trunc('month', now() AT TIME ZONE 'UTC' - interval '400 days')::date AS first
), accounts AS (
    DELETE FROM account_totals
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM account_totals
                            WHERE (SELECT count(*) FROM account_totals) > 4000 LIMIT (SELECT $1::bigint)))
    RETURNING *
), folded_accounts AS (
    INSERT INTO account_totals
    SELECT CASE WHEN day < first THEN date_trunc('month', day::timestamp)::date ELSE day END, role, is_active,
           sum(accounts)
    FROM accounts, days
    GROUP BY 1, 2, 3 HAVING sum(accounts) <> 0
    RETURNING day
), files AS (
    DELETE FROM file_totals
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM file_totals
                            WHERE (SELECT count(*) FROM file_totals) > 4000 LIMIT (SELECT $1::bigint)))
    RETURNING *
), folded_files AS (
    INSERT INTO file_totals
    SELECT CASE WHEN day < first THEN date_trunc('month', day::timestamp)::date ELSE day END, sum(files),
           sum(bytes)
    FROM files, days
    GROUP BY 1 HAVING sum(files) <> 0 OR sum(bytes) <> 0
    RETURNING day
)
SELECT (SELECT count(*) FROM accounts) - (SELECT count(*) FROM folded_accounts)
       + (SELECT count(*) FROM files) - (SELECT count(*) FROM folded_files) AS fewer
