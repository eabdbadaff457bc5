-- Removes up to $4 rows of table $1 in which the time $2 is over for longer than $3; returns how many.
SELECT sweep($1::text::regclass, $2, $3::text::interval, $4) AS removed
