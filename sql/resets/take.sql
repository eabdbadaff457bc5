-- Takes up to a hundred waiting requests, the oldest first, and writes an event for each that names an active account.
-- Several processes may run this at once: SKIP LOCKED gives each of them other rows.
WITH taken AS (
    DELETE FROM password_reset_requests
    WHERE id IN (SELECT id FROM password_reset_requests ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
    RETURNING email, requested_at, address, request_id
), event AS (
    INSERT INTO audit_events (at, action, subject_type, subject_id, address, request_id)
    SELECT taken.requested_at, 'password.reset_request', 'user', u.id, taken.address, taken.request_id
    FROM taken
    JOIN users u ON lower(u.email) = lower(taken.email)
                    AND u.is_active AND NOT u.is_deleted AND NOT u.is_development_admin
)
SELECT email FROM taken
