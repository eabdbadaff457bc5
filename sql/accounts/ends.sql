-- What goes with a change of an account, in its own row. A trigger, so that no statement can forget it.
CREATE FUNCTION complete_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A link for a password reset is good for one version of the credentials. A change of is_active raises it too, so a
    -- link from before a deactivation stays dead when the account is active again; and so does one of the identity.
    IF (NEW.is_active <> OLD.is_active
        OR (NEW.identity_issuer, NEW.identity_subject) IS DISTINCT FROM (OLD.identity_issuer, OLD.identity_subject))
       AND NEW.credentials_version = OLD.credentials_version THEN
        NEW.credentials_version := OLD.credentials_version + 1;
    END IF;
    -- Deleting an account erases all personal data in its row.
    IF NEW.is_deleted AND NOT OLD.is_deleted THEN
        NEW.username := NULL;
        NEW.email := NULL;
        NEW.email_key := NULL;
        NEW.name := NULL;
        NEW.password_hash := NULL;
        NEW.permissions := '{}';
        NEW.identity_issuer := NULL;
        NEW.identity_subject := NULL;
    END IF;
    IF NEW.identity_subject IS NULL THEN
        NEW.identity_email := NULL;
    END IF;
    -- Without its secret, nothing is left of a second factor.
    IF OLD.second_factor_sealed IS NOT NULL AND (NEW.second_factor_sealed IS NULL OR NEW.is_deleted) THEN
        NEW.second_factor_sealed := NULL;
        NEW.second_factor_pending_until := NULL;
        NEW.second_factor_at := NULL;
        NEW.second_factor_step := NULL;
        NEW.recovery_codes := NULL;
        NEW.wrong_codes := 0;
        NEW.wrong_code_times := NULL;
        NEW.wrong_code_networks := NULL;
    END IF;
    -- Another password begins a new count of wrong codes: nobody who knew the one before can send any more of them. So
    -- does a mailed link that joins an identity in its place. A hash that is only renewed leaves the version of the
    -- credentials as it is.
    IF OLD.credentials_version <> NEW.credentials_version
       AND (OLD.password_hash IS DISTINCT FROM NEW.password_hash
            OR NEW.is_active AND OLD.is_active AND OLD.email = NEW.email
               AND OLD.sessions_ended_at IS DISTINCT FROM NEW.sessions_ended_at) THEN
        NEW.wrong_codes := 0;
    END IF;
    RETURN NEW;
END
$$;

-- Not for an upload, which changes none of these columns.
CREATE TRIGGER users_complete_change BEFORE UPDATE ON users FOR EACH ROW
WHEN (NEW.is_active <> OLD.is_active OR NEW.is_deleted <> OLD.is_deleted
      OR (NEW.identity_issuer, NEW.identity_subject) IS DISTINCT FROM (OLD.identity_issuer, OLD.identity_subject)
      OR NEW.second_factor_sealed IS DISTINCT FROM OLD.second_factor_sealed
      OR NEW.password_hash IS DISTINCT FROM OLD.password_hash
      OR NEW.credentials_version <> OLD.credentials_version)
EXECUTE FUNCTION complete_change();

-- What ends with the password, with the activity, with the identity and with the account itself; the links of an
-- inactive account only wait. Deleted accounts leave nothing behind that a client has sent, nor the networks of its
-- owner. A trigger does this, so that no statement can forget it; and because its statements take a new snapshot, they
-- also delete what was committed while the change waited for the user's row.
CREATE FUNCTION end_with_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM personal_tokens WHERE user_id = NEW.id;
    IF (NEW.identity_issuer, NEW.identity_subject) IS DISTINCT FROM (OLD.identity_issuer, OLD.identity_subject) THEN
        UPDATE sessions SET ended_at = now()
        WHERE user_id = NEW.id AND epoch = NEW.session_epoch AND ended_at IS NULL AND ends_at IS NOT NULL;
    END IF;
    IF NEW.is_deleted OR OLD.password_hash IS DISTINCT FROM NEW.password_hash
       OR NEW.is_active AND OLD.is_active AND OLD.sessions_ended_at IS DISTINCT FROM NEW.sessions_ended_at THEN
        DELETE FROM file_links WHERE user_id = NEW.id;
    END IF;
    IF NEW.is_deleted THEN
        DELETE FROM sign_in_networks WHERE user_id = NEW.id;
        DELETE FROM idempotency_keys WHERE sender_id = NEW.id;
        DELETE FROM partial_uploads WHERE user_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;

-- The password has changed only if both its hash and the version of the credentials differ. A login that renews a hash
-- of outdated cost changes only the hash, and a new e-mail address only the version. A mailed link may also join the
-- identity again that an account without a password has: then the version differs, all sessions end, and the
-- address stays.
CREATE TRIGGER users_end_with_account AFTER UPDATE ON users FOR EACH ROW
WHEN (OLD.is_active AND NOT NEW.is_active
      OR NOT OLD.is_deleted AND NEW.is_deleted
      OR OLD.identity_subject IS NOT NULL
         AND (NEW.identity_issuer, NEW.identity_subject) IS DISTINCT FROM (OLD.identity_issuer, OLD.identity_subject)
      OR OLD.sessions_ended_at IS DISTINCT FROM NEW.sessions_ended_at AND OLD.email = NEW.email
         AND OLD.credentials_version <> NEW.credentials_version
      OR OLD.password_hash IS DISTINCT FROM NEW.password_hash
         AND OLD.credentials_version <> NEW.credentials_version)
EXECUTE FUNCTION end_with_account();
