-- Takes up to a hundred waiting requests, the oldest first. Several processes may run this at once: SKIP LOCKED gives
-- each of them other rows.
DELETE FROM password_reset_requests
WHERE id IN (SELECT id FROM password_reset_requests ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING email
