-- Stores a request for a password reset for the address with key $1. $2, $3: the client's address and the request's id,
-- for the event that mail/queue_resets.sql writes. It is the same work for every address, so the time of the
-- response does not tell whether an account has it.
INSERT INTO password_reset_requests (email_key, address, request_id) VALUES ($1, $2, $3)
