-- The most bytes and files that a user may have, set by an administrator. Null for the default of the settings.
ALTER TABLE users
ADD COLUMN storage_quota bigint CONSTRAINT users_storage_quota_check CHECK (storage_quota >= 0),
ADD COLUMN file_quota bigint CONSTRAINT users_file_quota_check CHECK (file_quota >= 0);

-- What a personal access token is accepted for, in place of whether it only reads. A program that does not know scopes
-- would accept a token that may only upload for more.
ALTER TABLE personal_tokens
ADD COLUMN scope text CONSTRAINT personal_tokens_scope_check CHECK (scope IN ('all', 'read', 'upload'));
UPDATE personal_tokens SET scope = CASE WHEN read_only THEN 'read' ELSE 'all' END;
ALTER TABLE personal_tokens ALTER COLUMN scope SET NOT NULL, DROP COLUMN read_only;
