-- Ends all personal access tokens of user $1. No row means that there is no such user.
WITH owner AS (
    SELECT id FROM users WHERE id = $1 AND NOT is_deleted AND NOT is_development_admin
), ended AS (
    DELETE FROM personal_tokens t USING owner WHERE t.user_id = owner.id
)
SELECT id FROM owner
