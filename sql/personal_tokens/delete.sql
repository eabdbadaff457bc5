-- Ends personal access token $2 of user $1. No row means that the user has no such live token.
DELETE FROM personal_tokens WHERE id = $2 AND user_id = $1 AND expires_at > now() RETURNING id
