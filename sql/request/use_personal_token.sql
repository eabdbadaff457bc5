-- Stores that personal access token $1 is used in this hour.
UPDATE personal_tokens SET last_used_at = date_trunc('hour', now(), 'UTC')
WHERE id = $1 AND last_used_at IS DISTINCT FROM date_trunc('hour', now(), 'UTC')
