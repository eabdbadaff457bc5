-- Anybody may request password resets of an account as often as the rate limits let them, and events are kept for a
-- year. So that this cannot fill the disk, an account has one event of it in two minutes. The requests that come
-- meanwhile are counted here, and resets/insert_counted.sql writes an event for them when the two minutes are over.
-- There is a row for each account that had such an event within two minutes. It does not refer to users, because
-- accounts are never removed from there.
CREATE TABLE password_reset_counts (
    user_id uuid PRIMARY KEY,
    -- When the last event was written.
    event_at timestamptz NOT NULL DEFAULT now(),
    -- How many requests have come since.
    requests bigint NOT NULL
);

-- New recovery codes are told to their owner. A process that does not know this kind of message leaves it to the
-- others, which find it ten minutes later.
ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check, ADD CONSTRAINT outbox_kind_check
CHECK (kind IN ('password_reset', 'password_changed', 'email_changed', 'token_created', 'second_factor_enabled',
                'second_factor_disabled', 'recovery_code_used', 'recovery_codes_renewed', 'too_many_wrong_codes',
                'invitation'));
