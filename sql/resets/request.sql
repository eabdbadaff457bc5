-- A request is stored, known address or not, and looked at later: time tells nothing.
INSERT INTO password_reset_requests (email) VALUES ($1)
