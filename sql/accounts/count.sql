-- The number of accounts, active or not.
SELECT coalesce(sum(accounts), 0)::bigint AS accounts FROM account_totals
