-- Notes that $2 bytes of upload $1 are synced, with what follows from them, $3, and the boot $4 of the host that writes
-- the next; and lets $5 bytes count towards the quotas that many share: $6, of one user without a quota of its own, $7,
-- of the service, $8, of young accounts. Returns whether these bytes fit, or nothing has changed; null if the upload
-- has ended.
SELECT advance_partial_upload($1, $2, $3, $4, $5, $6, $7, $8) AS fits
