-- The parts of the schema that are missing or have no effect: indexes that PostgreSQL does not use, constraints that
-- were never validated, triggers that are disabled. The first part lists what the migrations make, without the index
-- listed_users_search, which is not made everywhere; a test compares it with a new database. The second part is what
-- there is in the schema of the table files. The table is null if the object is missing.
WITH expected AS (
    SELECT 'index' AS kind, unnest(ARRAY[
        'audit_events_actor', 'audit_events_folded', 'audit_events_kind', 'audit_events_missing_code',
        'audit_events_pkey', 'audit_events_subject', 'deleted_contents_age', 'deleted_contents_pkey',
        'ended_epochs_pkey', 'file_links_expiry', 'file_links_file', 'file_links_pkey', 'file_links_token_hash_key',
        'file_links_user', 'files_name', 'files_newest', 'files_pkey',
        'files_size', 'files_type', 'installation_pkey', 'listed_users_admins',
        'listed_users_created', 'listed_users_email', 'listed_users_inactive', 'listed_users_name',
        'listed_users_name_desc', 'listed_users_oldest', 'listed_users_pkey', 'mail_counts_pkey', 'outbox_due',
        'outbox_failed', 'outbox_password_reset_key', 'outbox_pkey', 'own_changes_pkey',
        'password_reset_counts_pkey', 'password_reset_messages_pkey', 'password_reset_requests_pkey',
        'pending_removals_pkey',
        'personal_tokens_expiry', 'personal_tokens_pkey', 'personal_tokens_token_hash_key',
        'personal_tokens_user', 'refinery_schema_history_pkey', 'sessions_expiry', 'sessions_live',
        'sessions_pkey', 'sign_in_networks_last_sign_in_at', 'sign_in_networks_pkey', 'skipped_changes_pkey',
        'storage_shards_pkey', 'used_password_reset_tokens_expiry', 'used_password_reset_tokens_pkey',
        'used_password_reset_tokens_token_hash_key', 'users_admins', 'users_created', 'users_email_key',
        'users_pkey', 'users_second_factor', 'users_username_key'
    ]) AS name
    UNION ALL
    SELECT 'constraint', unnest(ARRAY[
        'audit_events_subject_check', 'file_links_file_id_fkey', 'file_links_user_id_fkey',
        'files_file_size_check', 'files_user_id_fkey', 'installation_is_only_check',
        'listed_users_user_id_fkey', 'outbox_kind_check', 'outbox_user_id_fkey',
        'password_reset_messages_user_id_fkey', 'pending_removals_user_id_fkey', 'personal_tokens_user_id_fkey',
        'sessions_user_id_fkey', 'sign_in_networks_user_id_fkey', 'used_password_reset_tokens_user_id_fkey',
        'users_complete_check', 'users_role_check'
    ])
    UNION ALL
    SELECT 'trigger', unnest(ARRAY[
        'audit_events_no_delete', 'audit_events_no_truncate', 'audit_events_no_update',
        'audit_events_own_changes', 'audit_events_own_links', 'files_added', 'files_removed',
        'files_total_added', 'files_total_removed', 'listed_users_added', 'listed_users_removed',
        'outbox_limits', 'personal_tokens_notice', 'sessions_forget_client', 'users_credentials_version',
        'users_file_links', 'users_forget_second_factor', 'users_forget_sign_in_networks',
        'users_forget_wrong_codes', 'users_last_admin', 'users_list', 'users_list_anew', 'users_notices',
        'users_personal_tokens', 'users_second_factor_notices', 'users_unsettle'
    ])
), own AS (
    SELECT c.oid, c.relname::text AS table_name FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'files'::regclass)
), found AS (
    SELECT 'index' AS kind, c.relname::text AS name, own.table_name,
           i.indisvalid AND i.indisready AND i.indislive AS has_effect
    FROM pg_index i JOIN own ON own.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
    UNION ALL
    SELECT 'constraint', c.conname, own.table_name, c.convalidated
    FROM pg_constraint c JOIN own ON own.oid = c.conrelid
    UNION ALL
    SELECT 'trigger', t.tgname, own.table_name, t.tgenabled NOT IN ('D', 'R')
    FROM pg_trigger t JOIN own ON own.oid = t.tgrelid
)
SELECT kind, name, found.table_name
FROM expected FULL JOIN found USING (kind, name)
WHERE found.has_effect IS NOT TRUE
ORDER BY kind, name
