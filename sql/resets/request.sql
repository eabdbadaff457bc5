-- Stores a request for a password reset for address $1. It is the same work for every address, so the time of the
-- response does not tell whether an account has it.
INSERT INTO password_reset_requests (email) VALUES ($1)
