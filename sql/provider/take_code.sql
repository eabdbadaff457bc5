-- Tries the code with hash $1 and the hash $2 of a verifier. The right one uses it up, and so do five wrong ones. The
-- condition is evaluated for the row as it is once it is locked, so of parallel requests one gets it. No row: it is not
-- good any more.
UPDATE provider_sign_ins
SET tries = tries + 1, is_used = challenge = $2 OR tries >= 4
WHERE code_hash = $1 AND NOT is_used AND code_expires_at > now()
RETURNING challenge = $2 AS is_right, proven
