-- Stores a request for a password reset for address $1. $2, $3: the client's address and the request's id, for the
-- event that resets/queue_messages.sql writes; $4: ASCII form of the address, if it differs. It is the same work for
-- every address, so the time of the response does not tell whether an account has it.
INSERT INTO password_reset_requests (email, address, request_id, email_ascii) VALUES ($1, $2, $3, $4)
