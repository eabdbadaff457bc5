-- Stores the code with hash $2 for the state with hash $1. $3: hash of the secret of the page; $4: whom the code proves.
UPDATE provider_sign_ins
SET code_hash = $2, code_expires_at = now() + interval '5 minutes', challenge = $3, proven = $4
WHERE state_hash = $1
