-- Up to a thousand accounts with sealed secrets, of second factors or of offers that are not over, in the order of ids,
-- after $2, whose secrets do not begin with $1: the key that sealed them is another one. With an empty $1, all.
SELECT id, second_factor_sealed
FROM users
WHERE second_factor_sealed IS NOT NULL AND id > $2
  AND (second_factor_at IS NOT NULL OR second_factor_pending_until > now())
  AND (length($1::bytea) = 0 OR substr(second_factor_sealed, 1, length($1)) <> $1)
ORDER BY id LIMIT 1000
