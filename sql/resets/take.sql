-- Takes up to a hundred waiting requests, the oldest first. SKIP LOCKED: of several processes each takes other ones.
DELETE FROM password_reset_requests
WHERE id IN (SELECT id FROM password_reset_requests ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING email
