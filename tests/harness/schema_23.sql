SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
COMMENT ON EXTENSION pg_trgm IS 'text similarity measurement and index searching based on trigrams';
CREATE TYPE public.audit_action AS ENUM (
    'auth.register',
    'auth.login',
    'auth.logout',
    'auth.refresh_reuse',
    'auth.session_end',
    'auth.token_create',
    'auth.token_delete',
    'password.change',
    'password.reset_request',
    'password.reset',
    'email.change',
    'user.create',
    'user.update',
    'user.delete',
    'users.export',
    'file.upload',
    'file.update',
    'file.delete',
    'file.link_create',
    'file.link_delete',
    'admin.create',
    'access.denied',
    'second_factor.enable',
    'second_factor.disable',
    'second_factor.recovery'
);
CREATE TYPE public.audit_outcome AS ENUM (
    'success',
    'failure'
);
CREATE FUNCTION public.admit_mail(counted text, most integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO mail_counts AS c (key, queued_at) VALUES (sha256(convert_to(counted, 'UTF8')), ARRAY[now()])
    ON CONFLICT (key) DO UPDATE SET queued_at = (now() || c.queued_at)[1:most]
    WHERE c.queued_at[most] IS NULL OR c.queued_at[most] <= now() - interval '1 day';
    RETURN FOUND;
END
$$;
CREATE FUNCTION public.count_files() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    bytes bigint := (SELECT sum(file_size) FROM changed);
BEGIN
    IF bytes IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE users u
    SET total_uploads = total_uploads + sign * c.files, total_storage_used = total_storage_used + sign * c.bytes
    FROM (SELECT user_id, count(*) AS files, sum(file_size)::bigint AS bytes FROM changed GROUP BY user_id) c
    WHERE u.id = c.user_id;
    UPDATE storage_shards SET used = used + sign * bytes
    WHERE shard = (SELECT shard FROM storage_shards LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        UPDATE storage_shards SET used = used + sign * bytes WHERE shard = pg_backend_pid() % 64;
    END IF;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.count_personal_tokens(of_user uuid) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (SELECT count(*) FROM personal_tokens WHERE user_id = of_user AND expires_at > now());
END
$$;
CREATE FUNCTION public.end_file_links() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM file_links WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.end_personal_tokens() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM personal_tokens WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.end_sessions(of_user uuid, but_not uuid DEFAULT NULL::uuid) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    ended_epoch integer;
    ended bigint;
BEGIN
    UPDATE users SET session_epoch = session_epoch + 1 WHERE id = of_user
    RETURNING session_epoch - 1 INTO ended_epoch;
    UPDATE sessions SET epoch = ended_epoch + 1
    WHERE id = but_not AND user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL;
    ended := (SELECT count(*) FROM (
        SELECT FROM sessions WHERE user_id = of_user AND epoch = ended_epoch AND ended_at IS NULL
        ORDER BY created_at DESC, id LIMIT 1000
    ) live);
    IF ended > 0 THEN
        INSERT INTO ended_epochs (user_id, epoch) VALUES (of_user, ended_epoch);
    END IF;
    RETURN ended;
END
$$;
CREATE FUNCTION public.forget_client() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.address := NULL;
    NEW.user_agent := NULL;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.forget_second_factor() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.second_factor_sealed := NULL;
    NEW.second_factor_pending_until := NULL;
    NEW.second_factor_at := NULL;
    NEW.second_factor_step := NULL;
    NEW.recovery_codes := NULL;
    NEW.wrong_codes := 0;
    NEW.wrong_code_times := NULL;
    NEW.wrong_code_networks := NULL;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.forget_sign_in_networks() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM sign_in_networks WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.forget_wrong_codes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.wrong_codes := 0;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.has_room_for_file_link(of_user uuid, of_file uuid, most_of_user bigint, most_of_file bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (SELECT count(*) < most_of_user AND count(*) FILTER (WHERE file_id = of_file) < most_of_file
            FROM file_links WHERE user_id = of_user AND expires_at > now());
END
$$;
CREATE FUNCTION public.has_storage_for(size bigint, quota bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    max_large bigint := quota / 8;
    max_small bigint := max_large / current_setting('max_connections')::bigint;
BEGIN
    IF size <= max_large THEN
        BEGIN
            IF size > max_small THEN
                PERFORM pg_advisory_xact_lock(hashtext('cloakroom: large file'));
            END IF;
            PERFORM pg_advisory_xact_lock_shared(hashtext('cloakroom: quota of the service'));
            IF (SELECT sum(used) FROM storage_shards) <= quota - 2 * max_large THEN
                RETURN true;
            END IF;
            -- Leaving the block with an exception releases the locks. If two held the lock shared while they waited
            -- for it alone, they would deadlock.
            RAISE 'near the quota';
        EXCEPTION WHEN raise_exception THEN
        END;
    END IF;
    RETURN (SELECT used + size <= quota FROM lock_storage_used() used);
END
$$;
CREATE FUNCTION public.is_live_session(session uuid, of_user uuid, of_epoch integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM sessions WHERE id = session AND user_id = of_user AND epoch = of_epoch AND ended_at IS NULL
    );
END
$$;
CREATE FUNCTION public.keep_an_admin() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: last admin'));
    IF NOT EXISTS (SELECT FROM users
                   WHERE role = 'admin' AND is_active AND NOT is_deleted AND NOT is_development_admin) THEN
        RAISE EXCEPTION 'the last active admin stays'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'users_last_admin';
    END IF;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.keep_audit_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'audit events are neither changed nor deleted'
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_events_are_kept';
END
$$;
CREATE FUNCTION public.limit_mail() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    account users;
    counted text;
BEGIN
    IF NEW.kind <> 'password_reset' AND NOT admit_mail(
        NEW.kind || ' ' || NEW.user_id, CASE NEW.kind WHEN 'password_changed' THEN 10 ELSE 5 END
    ) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO account FROM users WHERE id = NEW.user_id;
    -- It goes where the account is now, or the account could move to another mailbox before the message is sent.
    counted := coalesce(NEW.address, account.email_ascii, account.email, '');
    NEW.address := coalesce(NEW.address, account.email);
    IF (account.is_settled OR account.created_at <= now() - interval '1 day')
       AND coalesce(account.email_changed_at <= now() - interval '1 day', true)
       OR admit_mail(mailbox(counted), 12) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.limit_own_changes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    this_hour timestamptz := date_trunc('hour', NEW.at, 'UTC');
BEGIN
    INSERT INTO own_changes AS c (user_id, hour, in_hour, on_day) VALUES (NEW.actor_id, this_hour, 1, 1)
    ON CONFLICT (user_id) DO UPDATE
    SET hour = greatest(c.hour, this_hour),
        in_hour = CASE WHEN c.hour < this_hour THEN 1 ELSE c.in_hour + 1 END,
        on_day = CASE WHEN c.hour < date_trunc('day', this_hour, 'UTC') THEN 1 ELSE c.on_day + 1 END
    WHERE (c.hour < this_hour OR c.in_hour < 100)
      AND (c.hour < date_trunc('day', this_hour, 'UTC') OR c.on_day < 1000);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    INSERT INTO skipped_changes AS s (hour, user_id, action, changes)
    VALUES (this_hour, NEW.actor_id, NEW.action, 1)
    ON CONFLICT (hour, user_id, action) DO UPDATE SET changes = s.changes + 1;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.list_user_anew() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM listed_users WHERE user_id = NEW.id;
    INSERT INTO listed_users SELECT * FROM listable_users WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.list_users() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO listed_users SELECT listable.* FROM added JOIN listable_users listable ON listable.user_id = added.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.lock_storage_used() RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('cloakroom: quota of the service'));
    RETURN QUERY SELECT sum(used)::bigint FROM storage_shards;
END
$$;
CREATE FUNCTION public.mailbox(address text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT translate(regexp_replace(lower(address), '\+.*(@[^@]*)$', '\1'), '"\', '')
$_$;
CREATE FUNCTION public.make_room_for_session(of_user uuid, of_epoch integer, most bigint, access_lifetime interval) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE sessions SET ended_at = now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM (
            SELECT id, created_at, rotated_at FROM sessions
            WHERE user_id = of_user AND epoch = of_epoch AND ended_at IS NULL AND expires_at > now()
            ORDER BY created_at, id DESC LIMIT most + 1
        ) oldest
        ORDER BY rotated_at = '{}' AND created_at < now() - access_lifetime,
                 coalesce(rotated_at[1], created_at) DESC
        OFFSET most - 1
    ));
END
$$;
CREATE FUNCTION public.queue_notices() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO outbox (kind, user_id, address)
    SELECT notice.kind, NEW.id, notice.address
    FROM (VALUES ('password_changed', NULL, NEW.password_hash <> OLD.password_hash),
                 ('email_changed', coalesce(OLD.email_ascii, OLD.email), lower(NEW.email) <> lower(OLD.email)))
         notice (kind, address, is_due)
    WHERE notice.is_due
    ORDER BY mailbox(coalesce(notice.address, NEW.email_ascii, NEW.email));
    RETURN NULL;
END
$$;
CREATE FUNCTION public.queue_second_factor_notices() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO outbox (kind, user_id)
    SELECT notice.kind, NEW.id
    FROM (VALUES ('second_factor_enabled', OLD.second_factor_at IS NULL AND NEW.second_factor_at IS NOT NULL),
                 ('second_factor_disabled', OLD.second_factor_at IS NOT NULL AND NEW.second_factor_at IS NULL),
                 ('recovery_code_used', cardinality(NEW.recovery_codes) < cardinality(OLD.recovery_codes)),
                 ('too_many_wrong_codes', NEW.wrong_codes = 100 AND OLD.wrong_codes < 100)) notice (kind, is_due)
    WHERE notice.is_due;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.queue_token_notice() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO outbox (kind, user_id) VALUES ('token_created', NEW.user_id);
    RETURN NULL;
END
$$;
CREATE FUNCTION public.raise_credentials_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.credentials_version := OLD.credentials_version + 1;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.sign_in_network(address inet) RETURNS cidr
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.users (
    id uuid NOT NULL,
    username text,
    email text,
    name text,
    password_hash text,
    role text DEFAULT 'user'::text NOT NULL,
    permissions text[] DEFAULT '{}'::text[] NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    is_deleted boolean DEFAULT false NOT NULL,
    credentials_version integer DEFAULT 1 NOT NULL,
    sessions_ended_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    last_login timestamp with time zone,
    total_uploads bigint DEFAULT 0 NOT NULL,
    total_storage_used bigint DEFAULT 0 NOT NULL,
    is_development_admin boolean DEFAULT false NOT NULL,
    email_ascii text,
    is_settled boolean DEFAULT false NOT NULL,
    email_changed_at timestamp with time zone,
    session_epoch integer DEFAULT 1 NOT NULL,
    second_factor_sealed bytea,
    second_factor_pending_until timestamp with time zone,
    second_factor_at timestamp with time zone,
    second_factor_step bigint,
    recovery_codes bytea[],
    wrong_codes integer DEFAULT 0 NOT NULL,
    wrong_code_times timestamp with time zone[],
    wrong_code_networks cidr[],
    CONSTRAINT users_complete_check CHECK ((is_deleted OR ((email IS NOT NULL) AND (is_development_admin OR (password_hash IS NOT NULL))))),
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['user'::text, 'admin'::text])))
);
CREATE FUNCTION public.takes_code(account public.users, client inet, step bigint, recovery_code bytea) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT account.wrong_codes < 100
           AND wrong_code_wait(account.wrong_code_times, account.wrong_code_networks, client) IS NULL
           AND (step > coalesce(account.second_factor_step, 0) OR recovery_code = ANY (account.recovery_codes))
$$;
CREATE FUNCTION public.total_accounts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO account_totals
    SELECT (created_at AT TIME ZONE 'UTC')::date, role, is_active,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*)
    FROM changed GROUP BY 1, 2, 3;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.total_files() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO file_totals
    SELECT (upload_date AT TIME ZONE 'UTC')::date,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*),
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(file_size)
    FROM changed GROUP BY 1;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.unsettle() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE users SET email_changed_at = now() WHERE id = NEW.id;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.wrong_code_wait(times timestamp with time zone[], networks cidr[], client inet) RETURNS interval
    LANGUAGE sql STABLE STRICT
    AS $$
    SELECT sent.at + interval '1 hour' - now()
    FROM unnest(times, networks) sent (at, network)
    WHERE sent.network = sign_in_network(client) AND sent.at > now() - interval '1 hour'
    ORDER BY sent.at DESC OFFSET 9 LIMIT 1
$$;
CREATE TABLE public.account_totals (
    month date NOT NULL,
    role text NOT NULL,
    is_active boolean NOT NULL,
    accounts bigint NOT NULL
);
COMMENT ON COLUMN public.account_totals.month IS 'A day (UTC), or the first day of a month that was folded.';
CREATE TABLE public.audit_events (
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    action public.audit_action NOT NULL,
    outcome public.audit_outcome DEFAULT 'success'::public.audit_outcome NOT NULL,
    actor_id uuid,
    subject_type text,
    subject_id uuid,
    address inet,
    request_id uuid,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT audit_events_subject_check CHECK (((subject_type IS NULL) = (subject_id IS NULL)))
);
CREATE TABLE public.deleted_contents (
    id uuid NOT NULL,
    deleted_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.ended_epochs (
    user_id uuid NOT NULL,
    epoch integer NOT NULL
);
CREATE TABLE public.file_links (
    id uuid NOT NULL,
    file_id uuid NOT NULL,
    user_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    inline boolean NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.file_totals (
    month date NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL
);
COMMENT ON COLUMN public.file_totals.month IS 'A day (UTC), or the first day of a month that was folded.';
CREATE TABLE public.files (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    filename character varying(255) NOT NULL,
    original_filename character varying(255) NOT NULL,
    content_type character varying(100) NOT NULL,
    file_size bigint NOT NULL,
    file_path character varying(500) NOT NULL,
    file_hash character varying(64) NOT NULL,
    description text,
    upload_date timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    is_public boolean DEFAULT false NOT NULL,
    CONSTRAINT files_file_size_check CHECK ((file_size >= 0))
);
CREATE TABLE public.installation (
    is_only boolean DEFAULT true NOT NULL,
    id uuid NOT NULL,
    CONSTRAINT installation_is_only_check CHECK (is_only)
);
CREATE TABLE public.kept_contents (
    id uuid NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE VIEW public.listable_users AS
 SELECT users.id AS user_id,
    users.created_at,
    users.is_active,
    users.role,
    lower(users.username) AS username,
    lower(users.email) AS email,
    lower(COALESCE(users.email_ascii, users.email)) AS email_key,
    lower(users.name) AS name
   FROM public.users
  WHERE ((NOT users.is_deleted) AND (NOT users.is_development_admin));
CREATE TABLE public.listed_users (
    user_id uuid NOT NULL,
    created_at timestamp with time zone,
    is_active boolean,
    role text,
    username text,
    email text,
    email_key text,
    name text
);
CREATE TABLE public.mail_counts (
    key bytea NOT NULL,
    queued_at timestamp with time zone[] NOT NULL
);
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    kind text NOT NULL,
    user_id uuid NOT NULL,
    address text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    failed_at timestamp with time zone,
    error text,
    CONSTRAINT outbox_kind_check CHECK ((kind = ANY (ARRAY['password_reset'::text, 'password_changed'::text, 'email_changed'::text, 'token_created'::text, 'second_factor_enabled'::text, 'second_factor_disabled'::text, 'recovery_code_used'::text, 'too_many_wrong_codes'::text, 'invitation'::text])))
);
ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.own_changes (
    user_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    in_hour integer NOT NULL,
    on_day integer NOT NULL
);
CREATE TABLE public.password_reset_messages (
    user_id uuid NOT NULL,
    sent_at timestamp with time zone[] NOT NULL
);
CREATE TABLE public.password_reset_requests (
    id bigint NOT NULL,
    email text NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    address inet,
    request_id uuid,
    email_ascii text
);
ALTER TABLE public.password_reset_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.password_reset_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.pending_removals (
    user_id uuid NOT NULL
);
CREATE TABLE public.personal_tokens (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    name text NOT NULL,
    read_only boolean NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone
);
CREATE TABLE public.refinery_schema_history (
    version integer NOT NULL,
    name character varying(255),
    applied_on character varying(255),
    checksum character varying(255),
    oldest_program integer
);
CREATE TABLE public.sessions (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    refresh_id uuid NOT NULL,
    rotated_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    rotated_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    address inet,
    user_agent text,
    epoch integer DEFAULT 1 NOT NULL
);
CREATE TABLE public.sign_in_networks (
    user_id uuid NOT NULL,
    network cidr NOT NULL,
    last_sign_in_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.skipped_changes (
    hour timestamp with time zone NOT NULL,
    user_id uuid NOT NULL,
    action public.audit_action NOT NULL,
    changes bigint NOT NULL
);
CREATE VIEW public.storage AS
 SELECT true AS is_only,
    used.used
   FROM public.lock_storage_used() used(used);
CREATE TABLE public.storage_shards (
    shard smallint NOT NULL,
    used bigint NOT NULL
);
CREATE TABLE public.used_password_reset_tokens (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    token_hash text NOT NULL,
    used_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, -1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'admin', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, -1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, 1);
INSERT INTO public.account_totals VALUES ('2026-11-24', 'user', true, -1);
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:52.635947+00', 'd35403f3-00ee-42e5-805c-d7ff3471aaa6', 'auth.register', 'success', '41cf3794-26e2-4f50-9f28-bd0a1fb7079b', 'user', '41cf3794-26e2-4f50-9f28-bd0a1fb7079b', '127.0.0.1', '1f3d991f-bf8d-47d1-b77d-2baabb3ae37c', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:52.845325+00', '3c32a0a3-f026-4245-9c65-13ea7752c586', 'auth.register', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'user', '62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.1', '607706fb-69a2-4c6b-b071-c00e9d040b65', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:52.927647+00', '844e82e5-bbc4-4b10-97bd-d578557dbe8c', 'auth.register', 'success', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'user', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.1', '8c295965-fef3-429a-b6eb-6c561e1a1fd5', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:53.282406+00', 'd51ce540-57ad-4f65-b5a2-2fdac0b3cd0f', 'auth.register', 'success', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'user', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', '127.0.0.1', 'c7a5fc56-f8b1-4e5a-890c-ce9c607e2479', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:53.334998+00', 'b6b2da31-dbef-4c43-9239-897463441965', 'auth.register', 'success', 'f70ed04d-b5fe-4544-aef6-4134c409b5e1', 'user', 'f70ed04d-b5fe-4544-aef6-4134c409b5e1', '127.0.0.1', 'eb889e69-e630-43b5-bcc1-3b366d9b5ad3', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:53.797534+00', 'a2b34d6e-39c1-4624-a2d9-0d120cfcb442', 'auth.login', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'user', '62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.1', '7dd636cb-3caa-4e61-aed5-12586965bd67', '{"session_id": "4f1e7bb9-a4cf-4520-8aae-f82f4536b375"}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:54.680402+00', '27f784ea-5328-4886-9a62-db36b07df3a8', 'auth.logout', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'user', '62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.1', '5face34f-b36d-4aff-a9ca-9e2ee2be1395', '{"scope": "local", "sessions": 1}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:54.735037+00', 'fc9a04ce-0c19-4359-9324-3691e8ab90b1', 'auth.login', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'user', '62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.1', '0bff886a-b9f3-49e9-be55-05a1f205d257', '{"session_id": "6bc0bb1d-cd54-40d5-a1f1-d51f6cdf892d"}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:57.083137+00', 'ee67b6b7-6d3d-41e7-b1fc-56725adda2d0', 'auth.token_create', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'token', '9c19fbcd-f25e-42b2-8c34-70cdf5fdb98e', '127.0.0.1', 'feb1e1dd-38ef-4982-a0ad-96b45b434ace', '{"read_only": true, "expires_in_days": 365}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:57.442703+00', 'c4f54d99-e39a-491a-bb99-b50c7b48a8f5', 'file.upload', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'file', '1748d937-0664-45b6-9097-257753c45f97', '127.0.0.1', '46b74ab9-6a3e-4f8c-adc0-d22aaf1fc15c', '{"file_size": 1078}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:58.112525+00', '2c1d4f99-0240-4407-86ec-0a015996b68b', 'file.link_create', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'file', '1748d937-0664-45b6-9097-257753c45f97', '127.0.0.1', '4ba64494-9787-4c6d-8556-ffe62efba692', '{"inline": false, "link_id": "a9677d28-b2d1-41c5-af8d-35ecef6d6437", "expires_in_minutes": 43200}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:58.243265+00', 'd57496e2-ca2f-442e-b947-c775ebca426e', 'file.upload', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'file', '44c2c6fa-2f5b-4f23-9790-ac09645ff3df', '127.0.0.1', 'aad5e277-5175-4b4e-a871-d68b9dcf2830', '{"file_size": 1078}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:58.750633+00', 'f8be3ebd-5b1f-44cb-b1fb-b491496ef82f', 'file.delete', 'success', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'file', '44c2c6fa-2f5b-4f23-9790-ac09645ff3df', '127.0.0.1', 'a7fab965-fbf3-49c1-9a97-116ad928831d', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:49:59.345411+00', '0ed2a4ed-8ced-497e-91a1-5284517b31a5', 'auth.login', 'success', '41cf3794-26e2-4f50-9f28-bd0a1fb7079b', 'user', '41cf3794-26e2-4f50-9f28-bd0a1fb7079b', '127.0.0.1', 'ecc5146a-53fd-42b6-8484-28746b16fdcb', '{"session_id": "7ac43b0d-6c8c-4a66-bf1d-2298a4f6be60"}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:00.465991+00', '4e268d2f-448b-41d3-b5e4-e22248e62b1e', 'auth.login', 'success', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'user', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', '127.0.0.1', 'd7c56cf4-40ff-4072-a637-f4da1ddb2cd6', '{"session_id": "0538c99d-722c-445d-b5b3-fd64a20b5ea4"}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:02.761192+00', '4ad8427a-86bb-4faf-9373-0521b4900c23', 'file.upload', 'success', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'file', 'c5b5de5f-5f57-439f-963e-345af4f5dfcb', '127.0.0.1', '288a52fa-dd55-46f6-a91e-cb75d29db916', '{"file_size": 1078}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:02.969844+00', '72ba4b65-6efc-446b-b631-2badcff85436', 'password.reset_request', 'success', NULL, 'user', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.1', '27a924d9-1331-4ab4-80cd-6b78c6ed260c', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:02.8221+00', '72af0c8e-6ec4-4148-893b-eded1cfe941b', 'auth.login', 'failure', NULL, 'user', '62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.1', 'ac388ab5-484f-410d-b12f-aa693972eb05', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:05.14535+00', '1573745b-5e1c-46b1-ab94-000cdce6786b', 'password.reset', 'success', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'user', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.1', '0bc9571f-e214-4f54-88fd-5ba106917aaf', '{}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:05.203672+00', '802c9aed-593a-41bf-a0a7-00f84b70eaf6', 'auth.login', 'success', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'user', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.1', '537d507a-08b7-4785-bc0a-6a132119a75b', '{"session_id": "e126e3a1-0621-446a-8afc-1d1ef9b022ca"}');
INSERT INTO public.audit_events VALUES ('2026-11-24 02:50:06.423668+00', 'd9de5ba3-5b9b-4ee3-a49d-1f734f178c9e', 'email.change', 'success', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'user', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.1', '28fedd5c-b89e-43a7-9600-e41a425ea883', '{}');
INSERT INTO public.deleted_contents VALUES ('44c2c6fa-2f5b-4f23-9790-ac09645ff3df', '2026-11-24 02:49:58.749632+00');
INSERT INTO public.ended_epochs VALUES ('62f8a848-2ef0-4e9e-981e-896460a317c1', 1);
INSERT INTO public.file_links VALUES ('a9677d28-b2d1-41c5-af8d-35ecef6d6437', '1748d937-0664-45b6-9097-257753c45f97', '62f8a848-2ef0-4e9e-981e-896460a317c1', '\x4d1cf6bf1afba0d077215e3a61e111d81e4733c6bbdb97b81af62cdc9321540a', false, '2026-11-24 02:49:58.111251+00', '2026-12-24 02:49:58.111251+00');
INSERT INTO public.file_totals VALUES ('2026-11-24', 1, 1078);
INSERT INTO public.file_totals VALUES ('2026-11-24', 1, 1078);
INSERT INTO public.file_totals VALUES ('2026-11-24', -1, -1078);
INSERT INTO public.file_totals VALUES ('2026-11-24', 1, 1078);
INSERT INTO public.files VALUES ('1748d937-0664-45b6-9097-257753c45f97', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'LICENSE', 'LICENSE', 'text/plain', 1078, 'files/1748d937-0664-45b6-9097-257753c45f97', 'dfdb3a913830ca1f2f176cf2229857b342ce6785be05015b4bd19545059ccef9', 'A license', '2026-11-24 02:49:57.441411+00', '2026-11-24 02:49:57.441411+00', false);
INSERT INTO public.files VALUES ('c5b5de5f-5f57-439f-963e-345af4f5dfcb', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'LICENSE', 'LICENSE', 'text/plain', 1078, 'files/c5b5de5f-5f57-439f-963e-345af4f5dfcb', 'dfdb3a913830ca1f2f176cf2229857b342ce6785be05015b4bd19545059ccef9', NULL, '2026-11-24 02:50:02.760521+00', '2026-11-24 02:50:02.760521+00', false);
INSERT INTO public.installation VALUES (true, 'e28c9f17-93f9-41ca-8262-0f9c3d9346bd');
INSERT INTO public.kept_contents VALUES ('f27943ed-6acd-4654-a5a4-6c116afd2d3d', '2026-11-24 02:50:09.676432+00');
INSERT INTO public.listed_users VALUES ('62f8a848-2ef0-4e9e-981e-896460a317c1', '2026-11-24 02:49:52.844901+00', true, 'user', 'ann', 'ann@example.com', 'ann@example.com', 'name of ann');
INSERT INTO public.listed_users VALUES ('f70ed04d-b5fe-4544-aef6-4134c409b5e1', '2026-11-24 02:49:53.334319+00', true, 'user', 'wide', 'a@ｅxample.com', 'a@example.com', NULL);
INSERT INTO public.listed_users VALUES ('41cf3794-26e2-4f50-9f28-bd0a1fb7079b', '2026-11-24 02:49:52.635096+00', true, 'admin', 'root', 'root@example.com', 'root@example.com', 'name of root');
INSERT INTO public.listed_users VALUES ('a6e7500a-0f40-4494-9aaa-c501a9fb302d', '2026-11-24 02:49:52.927296+00', true, 'user', 'bob', 'bob2@example.com', 'bob2@example.com', 'name of bob');
INSERT INTO public.mail_counts VALUES ('\x8349cf83979742a1621ff38dc6c0b8ffc9bb11e348cacf129b26c0f450641b5a', '{"2026-11-24 02:49:57.048731+00"}');
INSERT INTO public.mail_counts VALUES ('\x5ff860bf1190596c7188ab851db691f0f3169c453936e9e1eba2f9a47f7a0018', '{"2026-11-24 02:50:03.001906+00"}');
INSERT INTO public.mail_counts VALUES ('\x457bacab41ca70682115b3159f6742200e1a1fb6acf164e6a386de87aa385b17', '{"2026-11-24 02:50:06.423031+00"}');
INSERT INTO public.mail_counts VALUES ('\x9a2032fa2fc28660d36268702fa67f3d02d870022bc2afee092c60ec24f00a37', '{"2026-11-24 02:50:34.640841+00","2026-11-24 02:50:05.144057+00"}');
INSERT INTO public.mail_counts VALUES ('\x48fe21d184652dc3435e8cb20aceaa6c5998d783ed726f673b1581b444cc8299', '{"2026-11-24 02:50:34.640841+00"}');
INSERT INTO public.mail_counts VALUES ('\x520a2eab0524e06721f9c3ae00ae635cdd6df70bfc6b42f59d64f7a2073468fc', '{"2026-11-24 02:50:34.687986+00"}');
INSERT INTO public.mail_counts VALUES ('\x71d4f55f72fa128dfb468a1a3901507c804b74316488744d769d7f4b16696476', '{"2026-11-24 02:50:34.687986+00","2026-11-24 02:49:57.048731+00"}');
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (5, 'password_changed', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'bob2@example.com', '2026-11-24 02:50:34.640841+00', 0, '2026-11-24 02:50:34.640841+00', NULL, NULL);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (6, 'second_factor_enabled', '62f8a848-2ef0-4e9e-981e-896460a317c1', 'ann@example.com', '2026-11-24 02:50:34.687986+00', 0, '2026-11-24 02:50:34.687986+00', NULL, NULL);
INSERT INTO public.own_changes VALUES ('62f8a848-2ef0-4e9e-981e-896460a317c1', '2026-11-24 02:00:00+00', 6, 6);
INSERT INTO public.own_changes VALUES ('0ea5fa10-18d6-4215-b5dc-43705d9145f8', '2026-11-24 02:00:00+00', 1, 1);
INSERT INTO public.own_changes VALUES ('a6e7500a-0f40-4494-9aaa-c501a9fb302d', '2026-11-24 02:00:00+00', 1, 1);
INSERT INTO public.password_reset_messages VALUES ('a6e7500a-0f40-4494-9aaa-c501a9fb302d', '{"2026-11-24 02:50:03.031109+00"}');
INSERT INTO public.password_reset_requests OVERRIDING SYSTEM VALUE VALUES (2, 'bob2@example.com', '2026-11-24 02:50:09.675157+00', '192.0.2.1', NULL, NULL);
INSERT INTO public.pending_removals VALUES ('0ea5fa10-18d6-4215-b5dc-43705d9145f8');
INSERT INTO public.personal_tokens VALUES ('9c19fbcd-f25e-42b2-8c34-70cdf5fdb98e', '62f8a848-2ef0-4e9e-981e-896460a317c1', '\xedef4e01dc2c700080db8d707778561dd99804534c9754654d52d1f3866a2c0c', 'a script', true, '2026-11-24 02:49:57.048731+00', '2027-11-24 02:49:57.048731+00', NULL);
INSERT INTO public.refinery_schema_history VALUES (1, 'accounts', '2026-11-24T02:49:48.592587Z', '15755127399807303708', 1);
INSERT INTO public.refinery_schema_history VALUES (2, 'files', '2026-11-24T02:49:48.721499Z', '15134581741319717228', 2);
INSERT INTO public.refinery_schema_history VALUES (3, 'administration', '2026-11-24T02:49:48.817768Z', '5092191238748331714', 3);
INSERT INTO public.refinery_schema_history VALUES (4, 'installation_and_tombstones', '2026-11-24T02:49:48.925181Z', '8785751237051459355', 4);
INSERT INTO public.refinery_schema_history VALUES (5, 'outbox', '2026-11-24T02:49:49.048362Z', '10099190797588598481', 5);
INSERT INTO public.refinery_schema_history VALUES (6, 'sign_in_networks', '2026-11-24T02:49:49.061942Z', '5710779129738487559', 6);
INSERT INTO public.refinery_schema_history VALUES (7, 'sessions_and_tokens', '2026-11-24T02:49:49.076317Z', '17738261211644547126', 7);
INSERT INTO public.refinery_schema_history VALUES (8, 'audit', '2026-11-24T02:49:49.100131Z', '16373620262780438774', 8);
INSERT INTO public.refinery_schema_history VALUES (9, 'files_of_the_month', '2026-11-24T02:49:49.154110Z', '14983913782989050786', 9);
INSERT INTO public.refinery_schema_history VALUES (10, 'ascii_addresses', '2026-11-24T02:49:49.163017Z', '2246924010172126886', 10);
INSERT INTO public.refinery_schema_history VALUES (11, 'audit_limits', '2026-11-24T02:49:49.174009Z', '15527783607059450301', 11);
INSERT INTO public.refinery_schema_history VALUES (12, 'mail_limits', '2026-11-24T02:49:49.196689Z', '14392138257807951817', 12);
INSERT INTO public.refinery_schema_history VALUES (13, 'names_descending', '2026-11-24T02:49:49.411268Z', '6414678612015234882', 13);
INSERT INTO public.refinery_schema_history VALUES (14, 'session_epochs', '2026-11-24T02:49:49.613773Z', '4254660133039000182', 14);
INSERT INTO public.refinery_schema_history VALUES (15, 'storage_shards', '2026-11-24T02:49:49.727060Z', '1382169976834165991', 15);
INSERT INTO public.refinery_schema_history VALUES (16, 'listed_users', '2026-11-24T02:49:49.752605Z', '13764743206624393408', 16);
INSERT INTO public.refinery_schema_history VALUES (17, 'totals', '2026-11-24T02:49:49.832239Z', '2525257348308960379', 17);
INSERT INTO public.refinery_schema_history VALUES (18, 'second_factor', '2026-11-24T02:49:49.885761Z', '7757573826480708100', 18);
INSERT INTO public.refinery_schema_history VALUES (19, 'file_links', '2026-11-24T02:49:49.942654Z', '4867448235043619928', 19);
INSERT INTO public.refinery_schema_history VALUES (20, 'daily_statistics', '2026-11-24T02:49:49.977757Z', '7644227379217486460', 20);
INSERT INTO public.refinery_schema_history VALUES (21, 'largest_files_first', '2026-11-24T02:49:49.981178Z', '15259871701727091482', 21);
INSERT INTO public.refinery_schema_history VALUES (22, 'deleted_contents', '2026-11-24T02:49:50.013731Z', '10639506049056070702', 22);
INSERT INTO public.refinery_schema_history VALUES (23, 'folded_events', '2026-11-24T02:49:50.042061Z', '18176758725548412248', 23);
INSERT INTO public.sessions VALUES ('4f1e7bb9-a4cf-4520-8aae-f82f4536b375', '62f8a848-2ef0-4e9e-981e-896460a317c1', '6c51ce72-02d1-42f2-bd55-fba97e434a58', '{}', '{}', '2026-11-24 02:49:53.796185+00', '2026-12-01 02:49:53.785793+00', '2026-11-24 02:49:54.679977+00', NULL, NULL, 1);
INSERT INTO public.sessions VALUES ('6bc0bb1d-cd54-40d5-a1f1-d51f6cdf892d', '62f8a848-2ef0-4e9e-981e-896460a317c1', '90f333e6-f64c-4b16-ab3c-8badb4a7b2f2', '{229ecf8c-a4c9-4c5e-8bcf-797440a5ada6}', '{"2026-11-24 02:49:56.76996+00"}', '2026-11-24 02:49:54.733899+00', '2026-12-01 02:49:56.747479+00', NULL, '127.0.0.1', 'curl/7.88.1', 1);
INSERT INTO public.sessions VALUES ('7ac43b0d-6c8c-4a66-bf1d-2298a4f6be60', '41cf3794-26e2-4f50-9f28-bd0a1fb7079b', '5b49266e-9167-4be1-8520-b737cf304e45', '{}', '{}', '2026-11-24 02:49:59.340294+00', '2026-12-01 02:49:59.338707+00', NULL, '127.0.0.1', 'curl/7.88.1', 1);
INSERT INTO public.sessions VALUES ('0538c99d-722c-445d-b5b3-fd64a20b5ea4', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'eead58b2-bc47-4dfc-a0f6-58afd9ab856d', '{}', '{}', '2026-11-24 02:50:00.456623+00', '2026-12-01 02:50:00.456092+00', NULL, '127.0.0.1', 'curl/7.88.1', 1);
INSERT INTO public.sessions VALUES ('e126e3a1-0621-446a-8afc-1d1ef9b022ca', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', '05a8c72a-aa02-47eb-ba9b-0c756d70e308', '{}', '{}', '2026-11-24 02:50:05.202758+00', '2026-12-01 02:50:05.202651+00', NULL, '127.0.0.1', 'curl/7.88.1', 2);
INSERT INTO public.sign_in_networks VALUES ('62f8a848-2ef0-4e9e-981e-896460a317c1', '127.0.0.0/24', '2026-11-24 02:49:54.733899+00');
INSERT INTO public.sign_in_networks VALUES ('41cf3794-26e2-4f50-9f28-bd0a1fb7079b', '127.0.0.0/24', '2026-11-24 02:49:59.340294+00');
INSERT INTO public.sign_in_networks VALUES ('a6e7500a-0f40-4494-9aaa-c501a9fb302d', '127.0.0.0/24', '2026-11-24 02:50:05.202758+00');
INSERT INTO public.skipped_changes VALUES ('2026-11-24 02:00:00+00', '0ea5fa10-18d6-4215-b5dc-43705d9145f8', 'file.upload', 3);
INSERT INTO public.storage_shards VALUES (4, 0);
INSERT INTO public.storage_shards VALUES (5, 0);
INSERT INTO public.storage_shards VALUES (6, 0);
INSERT INTO public.storage_shards VALUES (7, 0);
INSERT INTO public.storage_shards VALUES (8, 0);
INSERT INTO public.storage_shards VALUES (9, 0);
INSERT INTO public.storage_shards VALUES (10, 0);
INSERT INTO public.storage_shards VALUES (11, 0);
INSERT INTO public.storage_shards VALUES (12, 0);
INSERT INTO public.storage_shards VALUES (13, 0);
INSERT INTO public.storage_shards VALUES (14, 0);
INSERT INTO public.storage_shards VALUES (15, 0);
INSERT INTO public.storage_shards VALUES (16, 0);
INSERT INTO public.storage_shards VALUES (17, 0);
INSERT INTO public.storage_shards VALUES (18, 0);
INSERT INTO public.storage_shards VALUES (19, 0);
INSERT INTO public.storage_shards VALUES (20, 0);
INSERT INTO public.storage_shards VALUES (21, 0);
INSERT INTO public.storage_shards VALUES (22, 0);
INSERT INTO public.storage_shards VALUES (23, 0);
INSERT INTO public.storage_shards VALUES (24, 0);
INSERT INTO public.storage_shards VALUES (25, 0);
INSERT INTO public.storage_shards VALUES (26, 0);
INSERT INTO public.storage_shards VALUES (27, 0);
INSERT INTO public.storage_shards VALUES (28, 0);
INSERT INTO public.storage_shards VALUES (29, 0);
INSERT INTO public.storage_shards VALUES (30, 0);
INSERT INTO public.storage_shards VALUES (31, 0);
INSERT INTO public.storage_shards VALUES (32, 0);
INSERT INTO public.storage_shards VALUES (33, 0);
INSERT INTO public.storage_shards VALUES (34, 0);
INSERT INTO public.storage_shards VALUES (35, 0);
INSERT INTO public.storage_shards VALUES (36, 0);
INSERT INTO public.storage_shards VALUES (37, 0);
INSERT INTO public.storage_shards VALUES (38, 0);
INSERT INTO public.storage_shards VALUES (39, 0);
INSERT INTO public.storage_shards VALUES (40, 0);
INSERT INTO public.storage_shards VALUES (41, 0);
INSERT INTO public.storage_shards VALUES (42, 0);
INSERT INTO public.storage_shards VALUES (43, 0);
INSERT INTO public.storage_shards VALUES (44, 0);
INSERT INTO public.storage_shards VALUES (45, 0);
INSERT INTO public.storage_shards VALUES (46, 0);
INSERT INTO public.storage_shards VALUES (47, 0);
INSERT INTO public.storage_shards VALUES (48, 0);
INSERT INTO public.storage_shards VALUES (49, 0);
INSERT INTO public.storage_shards VALUES (50, 0);
INSERT INTO public.storage_shards VALUES (51, 0);
INSERT INTO public.storage_shards VALUES (52, 0);
INSERT INTO public.storage_shards VALUES (53, 0);
INSERT INTO public.storage_shards VALUES (54, 0);
INSERT INTO public.storage_shards VALUES (55, 0);
INSERT INTO public.storage_shards VALUES (56, 0);
INSERT INTO public.storage_shards VALUES (57, 0);
INSERT INTO public.storage_shards VALUES (58, 0);
INSERT INTO public.storage_shards VALUES (59, 0);
INSERT INTO public.storage_shards VALUES (60, 0);
INSERT INTO public.storage_shards VALUES (61, 0);
INSERT INTO public.storage_shards VALUES (62, 0);
INSERT INTO public.storage_shards VALUES (63, 0);
INSERT INTO public.storage_shards VALUES (0, 1078);
INSERT INTO public.storage_shards VALUES (1, 1078);
INSERT INTO public.storage_shards VALUES (2, -1078);
INSERT INTO public.storage_shards VALUES (3, 1078);
INSERT INTO public.used_password_reset_tokens VALUES ('504fd97d-8519-4e5a-925e-f1aea4d59146', 'a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'c4f9e18c803caeb957ed5289a35344a543add1b6e30763e09fdbaaf42057c2d9', '2026-11-24 02:50:05.144057+00', '2026-11-24 03:20:03+00');
INSERT INTO public.users VALUES ('f70ed04d-b5fe-4544-aef6-4134c409b5e1', 'wide', 'a@ｅxample.com', NULL, '$scrypt$ln=4,r=8,p=1$vah5K4bFXKNolCm+jR0ARQ$ld/8LVicvluG4GMihFuO2vZ01Cfpf/VP0lfG9xEofI0', 'user', '{}', true, false, 1, NULL, '2026-11-24 02:49:53.334319+00', '2026-11-24 02:49:53.334319+00', NULL, 0, 0, false, 'a@example.com', false, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
INSERT INTO public.users VALUES ('41cf3794-26e2-4f50-9f28-bd0a1fb7079b', 'root', 'root@example.com', 'Name of root', '$scrypt$ln=4,r=8,p=1$/g/JvHeBR2IFLVKiqtUtLQ$tWlufXcQ68zcB/y8cuqAKlqP6y7rP1zzHpA3U606l/E', 'admin', '{}', true, false, 1, NULL, '2026-11-24 02:49:52.635096+00', '2026-11-24 02:49:52.635096+00', '2026-11-24 02:49:59.340294+00', 0, 0, false, NULL, false, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
INSERT INTO public.users VALUES ('a6e7500a-0f40-4494-9aaa-c501a9fb302d', 'bob', 'bob2@example.com', 'Name of bob', '$scrypt$ln=4,r=8,p=1$TgObd1h0XuvzRx6z02TMQA$QatpiYwlcdcJRHpf7XezNiAi/yWnXSILTVuB7GZXLJU', 'user', '{}', true, false, 3, '2026-11-24 02:50:05.144057+00', '2026-11-24 02:49:52.927296+00', '2026-11-24 02:50:06.423031+00', '2026-11-24 02:50:05.202758+00', 0, 0, false, NULL, true, '2026-11-24 02:50:06.423031+00', 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
INSERT INTO public.users VALUES ('0ea5fa10-18d6-4215-b5dc-43705d9145f8', NULL, NULL, NULL, NULL, 'user', '{}', true, true, 2, '2026-11-24 02:50:09.659196+00', '2026-11-24 02:49:53.280766+00', '2026-11-24 02:49:53.280766+00', '2026-11-24 02:50:00.456623+00', 1, 1078, false, NULL, false, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
INSERT INTO public.users VALUES ('62f8a848-2ef0-4e9e-981e-896460a317c1', 'ann', 'ann@example.com', 'Name of ann', '$scrypt$ln=4,r=8,p=1$OkAq1+1bW3V23x3upiSKGw$KaGfa1XTmeTAo8YMstSLyVs82LAxFgAbR5wlGV24/hc', 'user', '{}', true, false, 1, NULL, '2026-11-24 02:49:52.844901+00', '2026-11-24 02:49:52.844901+00', '2026-11-24 02:49:54.733899+00', 1, 1078, false, NULL, false, NULL, 1, '\x01dfe24de60b5d06959bd261a3c519caba299e924e418d4ebd0b588aef16de770f9ca20962a598053b9179be7ef6698dae9bb9e012a59fb537', '2026-11-24 03:04:59.043764+00', '2026-11-24 02:50:34.687986+00', 1, '{"\\x00"}', 1, '{"2026-11-24 02:50:34.687986+00"}', '{192.0.2.0/24}');
SELECT pg_catalog.setval('public.outbox_id_seq', 6, true);
SELECT pg_catalog.setval('public.password_reset_requests_id_seq', 2, true);
ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT audit_events_pkey PRIMARY KEY (at, id);
ALTER TABLE ONLY public.deleted_contents
    ADD CONSTRAINT deleted_contents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ended_epochs
    ADD CONSTRAINT ended_epochs_pkey PRIMARY KEY (user_id, epoch);
ALTER TABLE ONLY public.file_links
    ADD CONSTRAINT file_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.file_links
    ADD CONSTRAINT file_links_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (is_only);
ALTER TABLE ONLY public.kept_contents
    ADD CONSTRAINT kept_contents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.listed_users
    ADD CONSTRAINT listed_users_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.mail_counts
    ADD CONSTRAINT mail_counts_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.own_changes
    ADD CONSTRAINT own_changes_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.password_reset_messages
    ADD CONSTRAINT password_reset_messages_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.password_reset_requests
    ADD CONSTRAINT password_reset_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pending_removals
    ADD CONSTRAINT pending_removals_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.personal_tokens
    ADD CONSTRAINT personal_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.personal_tokens
    ADD CONSTRAINT personal_tokens_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.refinery_schema_history
    ADD CONSTRAINT refinery_schema_history_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sign_in_networks
    ADD CONSTRAINT sign_in_networks_pkey PRIMARY KEY (user_id, network);
ALTER TABLE ONLY public.skipped_changes
    ADD CONSTRAINT skipped_changes_pkey PRIMARY KEY (hour, user_id, action);
ALTER TABLE ONLY public.storage_shards
    ADD CONSTRAINT storage_shards_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY public.used_password_reset_tokens
    ADD CONSTRAINT used_password_reset_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.used_password_reset_tokens
    ADD CONSTRAINT used_password_reset_tokens_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
CREATE INDEX audit_events_actor ON public.audit_events USING btree (actor_id, action, outcome, at, id) WHERE (actor_id IS NOT NULL);
CREATE INDEX audit_events_folded ON public.audit_events USING btree (action, at) WHERE (details ? 'count'::text);
CREATE INDEX audit_events_kind ON public.audit_events USING btree (action, outcome, at, id);
CREATE INDEX audit_events_subject ON public.audit_events USING btree (subject_id, action, outcome, at, id, actor_id) WHERE (subject_id IS NOT NULL);
CREATE INDEX deleted_contents_age ON public.deleted_contents USING btree (deleted_at);
CREATE INDEX file_links_expiry ON public.file_links USING btree (expires_at);
CREATE INDEX file_links_file ON public.file_links USING btree (file_id);
CREATE INDEX file_links_user ON public.file_links USING btree (user_id, expires_at);
CREATE INDEX files_name ON public.files USING btree (user_id, lower((filename)::text), id);
CREATE INDEX files_newest ON public.files USING btree (user_id, upload_date DESC, id);
CREATE INDEX files_size ON public.files USING btree (user_id, file_size DESC, id);
CREATE INDEX files_type ON public.files USING btree (user_id, content_type);
CREATE INDEX listed_users_admins ON public.listed_users USING btree (created_at, user_id) WHERE (role = 'admin'::text);
CREATE INDEX listed_users_created ON public.listed_users USING btree (created_at DESC, user_id);
CREATE INDEX listed_users_email ON public.listed_users USING btree (email_key, user_id);
CREATE INDEX listed_users_inactive ON public.listed_users USING btree (created_at, user_id) WHERE (NOT is_active);
CREATE INDEX listed_users_name ON public.listed_users USING btree (name, user_id);
CREATE INDEX listed_users_name_desc ON public.listed_users USING btree (name DESC NULLS LAST, user_id);
CREATE INDEX listed_users_oldest ON public.listed_users USING btree (created_at, user_id);
CREATE INDEX listed_users_search ON public.listed_users USING gin (email public.gin_trgm_ops, name public.gin_trgm_ops, username public.gin_trgm_ops);
CREATE INDEX outbox_due ON public.outbox USING btree (((kind <> 'password_reset'::text)), due_at, id) WHERE (failed_at IS NULL);
CREATE INDEX outbox_failed ON public.outbox USING btree (failed_at) WHERE (failed_at IS NOT NULL);
CREATE UNIQUE INDEX outbox_password_reset_key ON public.outbox USING btree (user_id) WHERE ((kind = 'password_reset'::text) AND (failed_at IS NULL));
CREATE INDEX personal_tokens_expiry ON public.personal_tokens USING btree (expires_at);
CREATE INDEX personal_tokens_user ON public.personal_tokens USING btree (user_id);
CREATE INDEX sessions_expiry ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_live ON public.sessions USING btree (user_id, epoch, created_at DESC, id) WHERE (ended_at IS NULL);
CREATE INDEX sign_in_networks_last_sign_in_at ON public.sign_in_networks USING btree (last_sign_in_at);
CREATE INDEX used_password_reset_tokens_expiry ON public.used_password_reset_tokens USING btree (expires_at);
CREATE INDEX users_admins ON public.users USING btree (created_at, id) WHERE ((role = 'admin'::text) AND (NOT is_deleted) AND (NOT is_development_admin));
CREATE INDEX users_created ON public.users USING btree (created_at, id) WHERE ((NOT is_deleted) AND (NOT is_development_admin));
CREATE UNIQUE INDEX users_email_key ON public.users USING btree (lower(COALESCE(email_ascii, email))) WHERE ((NOT is_deleted) AND (NOT is_development_admin));
CREATE INDEX users_email_unfilled ON public.users USING btree (id) WHERE ((email_ascii IS NULL) AND (email ~ '[^ -~][^@]*$'::text));
CREATE INDEX users_second_factor ON public.users USING btree (id) WHERE (second_factor_sealed IS NOT NULL);
CREATE UNIQUE INDEX users_username_key ON public.users USING btree (lower(username)) WHERE ((NOT is_deleted) AND (NOT is_development_admin));
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON public.audit_events FOR EACH ROW WHEN ((current_setting('cloakroom.removes_old_audit_events'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION public.keep_audit_events();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION public.keep_audit_events();
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION public.keep_audit_events();
CREATE TRIGGER audit_events_own_changes BEFORE INSERT ON public.audit_events FOR EACH ROW WHEN (((new.outcome = 'success'::public.audit_outcome) AND (new.actor_id IS NOT NULL) AND ((new.action = ANY (ARRAY['file.upload'::public.audit_action, 'file.update'::public.audit_action, 'file.delete'::public.audit_action])) OR ((new.action = ANY (ARRAY['auth.token_create'::public.audit_action, 'auth.token_delete'::public.audit_action])) AND (new.subject_type = 'token'::text)) OR ((new.action = ANY (ARRAY['user.update'::public.audit_action, 'email.change'::public.audit_action, 'auth.logout'::public.audit_action])) AND (new.subject_id = new.actor_id)) OR ((new.action = 'auth.session_end'::public.audit_action) AND (new.subject_type = 'session'::text))) AND (NOT (new.details ?| ARRAY['count'::text, 'new'::text])))) EXECUTE FUNCTION public.limit_own_changes();
CREATE TRIGGER audit_events_own_links BEFORE INSERT ON public.audit_events FOR EACH ROW WHEN (((((new.action)::text = ANY (ARRAY['file.link_create'::text, 'file.link_delete'::text])) OR (((new.action)::text = ANY (ARRAY['second_factor.enable'::text, 'second_factor.disable'::text, 'second_factor.recovery'::text])) AND (new.outcome = 'success'::public.audit_outcome) AND (new.actor_id = new.subject_id))) AND (NOT (new.details ? 'count'::text)))) EXECUTE FUNCTION public.limit_own_changes();
CREATE TRIGGER files_added AFTER INSERT ON public.files REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_files();
CREATE TRIGGER files_removed AFTER DELETE ON public.files REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_files();
CREATE TRIGGER files_total_added AFTER INSERT ON public.files REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.total_files();
CREATE TRIGGER files_total_removed AFTER DELETE ON public.files REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.total_files();
CREATE TRIGGER listed_users_added AFTER INSERT ON public.listed_users REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.total_accounts();
CREATE TRIGGER listed_users_removed AFTER DELETE ON public.listed_users REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.total_accounts();
CREATE TRIGGER outbox_limits BEFORE INSERT ON public.outbox FOR EACH ROW EXECUTE FUNCTION public.limit_mail();
CREATE TRIGGER personal_tokens_notice AFTER INSERT ON public.personal_tokens FOR EACH ROW EXECUTE FUNCTION public.queue_token_notice();
CREATE TRIGGER sessions_forget_client BEFORE UPDATE ON public.sessions FOR EACH ROW WHEN ((new.ended_at IS NOT NULL)) EXECUTE FUNCTION public.forget_client();
CREATE TRIGGER users_credentials_version BEFORE UPDATE ON public.users FOR EACH ROW WHEN (((new.is_active <> old.is_active) AND (new.credentials_version = old.credentials_version))) EXECUTE FUNCTION public.raise_credentials_version();
CREATE TRIGGER users_file_links AFTER UPDATE ON public.users FOR EACH ROW WHEN ((((NOT old.is_deleted) AND new.is_deleted) OR ((old.password_hash IS DISTINCT FROM new.password_hash) AND (old.credentials_version <> new.credentials_version)))) EXECUTE FUNCTION public.end_file_links();
CREATE TRIGGER users_forget_second_factor BEFORE UPDATE ON public.users FOR EACH ROW WHEN (((old.second_factor_sealed IS NOT NULL) AND ((new.second_factor_sealed IS NULL) OR new.is_deleted))) EXECUTE FUNCTION public.forget_second_factor();
CREATE TRIGGER users_forget_sign_in_networks AFTER UPDATE OF is_deleted ON public.users FOR EACH ROW WHEN (new.is_deleted) EXECUTE FUNCTION public.forget_sign_in_networks();
CREATE TRIGGER users_forget_wrong_codes BEFORE UPDATE ON public.users FOR EACH ROW WHEN (((old.wrong_codes > 0) AND (old.password_hash IS DISTINCT FROM new.password_hash) AND (old.credentials_version <> new.credentials_version))) EXECUTE FUNCTION public.forget_wrong_codes();
CREATE TRIGGER users_last_admin AFTER UPDATE ON public.users FOR EACH ROW WHEN (((old.role = 'admin'::text) AND old.is_active AND (NOT old.is_deleted) AND (NOT old.is_development_admin) AND (NOT ((new.role = 'admin'::text) AND new.is_active AND (NOT new.is_deleted))) AND (current_setting('cloakroom.deletes_all_users'::text, true) IS DISTINCT FROM 'on'::text))) EXECUTE FUNCTION public.keep_an_admin();
CREATE TRIGGER users_list AFTER INSERT ON public.users REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.list_users();
CREATE TRIGGER users_list_anew AFTER UPDATE OF created_at, is_active, role, username, email, email_ascii, name, is_deleted ON public.users FOR EACH ROW WHEN (((((((((new.created_at IS DISTINCT FROM old.created_at) OR (new.is_active IS DISTINCT FROM old.is_active)) OR (new.role IS DISTINCT FROM old.role)) OR (new.username IS DISTINCT FROM old.username)) OR (new.email IS DISTINCT FROM old.email)) OR (new.email_ascii IS DISTINCT FROM old.email_ascii)) OR (new.name IS DISTINCT FROM old.name)) OR (new.is_deleted IS DISTINCT FROM old.is_deleted))) EXECUTE FUNCTION public.list_user_anew();
CREATE TRIGGER users_notices AFTER UPDATE ON public.users FOR EACH ROW WHEN (((new.credentials_version <> old.credentials_version) AND (NOT new.is_deleted) AND (NOT new.is_development_admin))) EXECUTE FUNCTION public.queue_notices();
CREATE TRIGGER users_personal_tokens AFTER UPDATE ON public.users FOR EACH ROW WHEN (((old.is_active AND (NOT new.is_active)) OR ((NOT old.is_deleted) AND new.is_deleted) OR ((old.password_hash IS DISTINCT FROM new.password_hash) AND (old.credentials_version <> new.credentials_version)))) EXECUTE FUNCTION public.end_personal_tokens();
CREATE TRIGGER users_second_factor_notices AFTER UPDATE ON public.users FOR EACH ROW WHEN (((NOT new.is_deleted) AND (((old.second_factor_at IS NULL) <> (new.second_factor_at IS NULL)) OR (cardinality(new.recovery_codes) < cardinality(old.recovery_codes)) OR ((new.wrong_codes = 100) AND (old.wrong_codes < 100))))) EXECUTE FUNCTION public.queue_second_factor_notices();
CREATE TRIGGER users_unsettle AFTER UPDATE ON public.users FOR EACH ROW WHEN ((lower(new.email) <> lower(old.email))) EXECUTE FUNCTION public.unsettle();
ALTER TABLE ONLY public.file_links
    ADD CONSTRAINT file_links_file_id_fkey FOREIGN KEY (file_id) REFERENCES public.files(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.file_links
    ADD CONSTRAINT file_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.listed_users
    ADD CONSTRAINT listed_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.password_reset_messages
    ADD CONSTRAINT password_reset_messages_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.pending_removals
    ADD CONSTRAINT pending_removals_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.personal_tokens
    ADD CONSTRAINT personal_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sign_in_networks
    ADD CONSTRAINT sign_in_networks_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.used_password_reset_tokens
    ADD CONSTRAINT used_password_reset_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
