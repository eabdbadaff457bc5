-- Offers user $1 a second factor, in place of one that was offered before. $2: version of the credentials that were
-- checked; $3: the sealed secret; $4: how long it may be confirmed, in seconds. No row means that the account has a
-- second factor, or that it was changed while its password was checked.
UPDATE users
SET second_factor_sealed = $3, second_factor_pending_until = now() + make_interval(secs => $4)
WHERE id = $1 AND credentials_version = $2 AND second_factor_at IS NULL AND NOT is_deleted
RETURNING id
