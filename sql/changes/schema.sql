-- Deletions of files, also of those that cannot be restored, so that clients that follow changes learn of them.
CREATE TABLE file_deletions (
    file_id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    change_number bigint NOT NULL DEFAULT nextval('change_numbers'),
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX file_deletions_changed ON file_deletions (user_id, change_number);
CREATE INDEX file_deletions_age ON file_deletions (deleted_at);

-- Forgets the oldest deletions of a user's files, at most 1,000, so that there are fewer than `most`. The caller has
-- locked the user's row, as the callers of the next two functions have. These are functions for their new snapshots.
CREATE FUNCTION forget_deletions(of_user uuid, most bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    too_many bigint := (SELECT least(remembered_deletions + 1 - most, 1000) FROM users WHERE id = of_user);
BEGIN
    IF too_many > 0 THEN
        WITH forgotten AS (
            DELETE FROM file_deletions
            WHERE file_id IN (SELECT file_id FROM file_deletions WHERE user_id = of_user
                              ORDER BY change_number LIMIT too_many)
            RETURNING change_number
        )
        UPDATE users
        SET remembered_deletions = remembered_deletions - (SELECT count(*) FROM forgotten),
            forgotten_change = greatest(forgotten_change, (SELECT max(change_number) FROM forgotten))
        WHERE id = of_user;
    END IF;
END
$$;
