-- The tables that triggers keep from others and that differ from what they are made of, with the number of rows that
-- are wrong or missing. In the snapshot of one statement they agree. For totals, a row is the sum of a month.
WITH accounts AS (
    SELECT month, role, is_active, sum(accounts) FROM account_totals
    GROUP BY month, role, is_active HAVING sum(accounts) <> 0
), counted_accounts AS (
    SELECT date_trunc('month', created_at AT TIME ZONE 'UTC')::date, role, is_active, count(*)
    FROM listable_users GROUP BY 1, 2, 3
), file_sums AS (
    SELECT month, sum(files), sum(bytes) FROM file_totals GROUP BY month HAVING sum(files) <> 0 OR sum(bytes) <> 0
), counted_files AS (
    SELECT date_trunc('month', upload_date AT TIME ZONE 'UTC')::date, count(*), sum(file_size) FROM files GROUP BY 1
), faults AS (
    SELECT 'listed_users' AS copy, count(*) AS faults
    FROM ((TABLE listed_users EXCEPT TABLE listable_users) UNION ALL (TABLE listable_users EXCEPT TABLE listed_users)) u
    UNION ALL
    SELECT 'account_totals', count(*)
    FROM ((TABLE accounts EXCEPT TABLE counted_accounts) UNION ALL (TABLE counted_accounts EXCEPT TABLE accounts)) a
    UNION ALL
    SELECT 'file_totals', count(*)
    FROM ((TABLE file_sums EXCEPT TABLE counted_files) UNION ALL (TABLE counted_files EXCEPT TABLE file_sums)) f
)
SELECT copy, faults FROM faults WHERE faults > 0
