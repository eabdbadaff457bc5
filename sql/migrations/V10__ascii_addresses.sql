-- E-mail addresses are compared by their ASCII form, so that a@ｅxample.com is a@example.com (IDNA, UTS #46). The
-- column holds that form if it differs from the address. SQL cannot compute it: the program fills it for the accounts
-- that exist, at its next start. It stays null if another of them has an address of the same form.
ALTER TABLE users ADD COLUMN email_ascii text;
DROP INDEX users_email_key;
CREATE UNIQUE INDEX users_email_key ON users (lower(coalesce(email_ascii, email)))
    WHERE NOT is_deleted AND NOT is_development_admin;
-- The accounts that a start looks at: the domain has other characters than printable ASCII, and no ASCII form yet.
CREATE INDEX users_email_unfilled ON users (id) WHERE email_ascii IS NULL AND email ~ '[^ -~][^@]*$';

ALTER TABLE password_reset_requests ADD COLUMN email_ascii text;
