-- Removes what no valid token can refer to any more.
WITH sessions_gone AS (DELETE FROM sessions WHERE expires_at < now())
DELETE FROM used_password_reset_tokens WHERE expires_at < now()
