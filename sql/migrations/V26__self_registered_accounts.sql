-- Whether the account's owner has registered it, and no administrator has made it. Anybody can make such accounts, so
-- while they are younger than seven days, all of them together may store a part of the service's quota only. Of older
-- ones nothing depends on this, so it is false for those of today. A process of the release before says nothing here,
-- so what is registered there counts as made by an administrator.
ALTER TABLE users ADD COLUMN is_self_registered boolean NOT NULL DEFAULT false;

UPDATE users SET is_self_registered = true
WHERE created_at > now() - interval '7 days' AND NOT is_deleted AND NOT is_development_admin
  AND EXISTS (SELECT FROM audit_events WHERE subject_id = users.id AND action = 'auth.register');

-- How many bytes young accounts that registered themselves may still store, if all of them together may have `quota`
-- bytes. They are counted only if all files and another one of `size` bytes exceed that; until then what is left is at
-- least what this returns. Uploads that run at once do not see each other here, so they may exceed it.
-- The index users_created leads to the young accounts. Their bytes are not in it, because otherwise each upload would
-- have to change it.
CREATE FUNCTION storage_left_to_young_accounts(size bigint, quota bigint) RETURNS bigint LANGUAGE plpgsql STRICT AS $$
DECLARE
    stored bigint := (SELECT sum(used) FROM storage_shards);
BEGIN
    IF stored + size > quota THEN
        stored := (
            SELECT coalesce(sum(total_storage_used), 0) FROM users
            WHERE created_at > now() - interval '7 days' AND is_self_registered
              AND NOT is_deleted AND NOT is_development_admin
        );
    END IF;
    RETURN quota - stored;
END
$$;
