-- Stores the code with hash $2 for the state with hash $1. $3: hash of the secret of the page; $4 to $11: the identity.
UPDATE provider_sign_ins
SET code_hash = $2, code_expires_at = now() + interval '5 minutes', challenge = $3, issuer = $4, subject = $5,
    email = $6, name = $7, is_fresh = $8, may_join = $9, is_known = $10, is_admin = $11
WHERE state_hash = $1
