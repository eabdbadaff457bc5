-- The oldest waiting requests. Of several processes each takes others.
DELETE FROM password_reset_requests
WHERE id IN (SELECT id FROM password_reset_requests ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING email
