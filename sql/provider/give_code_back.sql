-- Lets the code with hash $1 be used again, unless it was tried five times.
UPDATE provider_sign_ins SET is_used = tries >= 5 WHERE code_hash = $1
