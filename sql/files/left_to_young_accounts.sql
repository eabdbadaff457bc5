-- How many bytes young accounts that registered themselves may still store together, or at least $2, if their quota is
-- $3 bytes. No row means that the young account $1 did not register itself, so that quota is not its own.
SELECT storage_left_to_young_accounts($2, $3) AS bytes FROM users WHERE id = $1 AND is_self_registered
