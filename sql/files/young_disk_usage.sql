-- What young accounts that registered themselves use of the disk together, or more, if that and $2 bytes are within
-- their quota of $3 bytes. No row means that the young account $1 did not register itself, so that quota is not its
-- own.
SELECT young_disk_usage($2, $3) AS bytes FROM users WHERE id = $1 AND is_self_registered
