-- Replaces up to $1 rows of each table of totals by their sums, if there are more than 4,000 rows, so that reading the
-- totals stays cheap. A sum is that of a day or, if it is long ago, of a month: ten years have 2,200 sums of accounts.
-- Returns how many rows fewer there are. A row that another process replaces at the same time is gone when this
-- statement gets to it, and so is not among those that it adds up.
WITH accounts AS (
    DELETE FROM account_totals
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM account_totals
                            WHERE (SELECT count(*) FROM account_totals) > 4000 LIMIT (SELECT $1::bigint)))
    RETURNING *
), folded_accounts AS (
    INSERT INTO account_totals
    SELECT day_of_totals(day), role, is_active, sum(accounts) FROM accounts GROUP BY 1, 2, 3 HAVING sum(accounts) <> 0
    RETURNING day
), files AS (
    DELETE FROM file_totals
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM file_totals
                            WHERE (SELECT count(*) FROM file_totals) > 4000 LIMIT (SELECT $1::bigint)))
    RETURNING *
), folded_files AS (
    INSERT INTO file_totals
    SELECT day_of_totals(day), sum(files), sum(bytes) FROM files GROUP BY 1 HAVING sum(files) <> 0 OR sum(bytes) <> 0
    RETURNING day
)
SELECT (SELECT count(*) FROM accounts) - (SELECT count(*) FROM folded_accounts)
       + (SELECT count(*) FROM files) - (SELECT count(*) FROM folded_files) AS fewer
