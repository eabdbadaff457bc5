//! Black-box tests of the service: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`. A
//! folder has the tests of the module of that name in `src/`, or of the endpoints that are about one thing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../harness/mod.rs"]
mod harness;

mod pages;
mod structure;

mod api {
    pub mod access;
    mod address_limits;
    mod api_keys;
    mod bad_input;
    mod earlier_clients;
    mod encodings;
    mod ended_exports;
    mod exports;
    mod features;
    mod metrics;
    mod pages;
    mod protocol;
    mod rate_limits;
    mod test_only;
    mod trusted_pages;
    mod turns;
}

mod audit {
    mod agreement;
    mod events;
    mod failures;
    mod limits;
    mod log;
    mod tour;
}

mod auth {
    mod accounts;
    mod confirmation;
    mod confirmation_limits;
    mod confirmation_tokens;
    mod current_password;
    mod email_changes;
    mod ends;
    mod failed_sign_ins;
    mod held_requests;
    mod key_rotation;
    mod overtaken;
    mod password_forms;
    mod personal_tokens;
    mod races;
    mod refused_passwords;
    mod resets;
    mod revocations;
    mod second_factor;
    mod second_factor_secrets;
    mod second_factor_sign_in;
    mod session_limit;
    mod session_lookups;
    mod session_management;
    mod sessions;
    mod tokens;
}

mod background {
    mod batches;
    mod outbox;
}

mod db {
    mod database;
    mod degraded;
    mod locks;
    mod migrations;
    mod outage;
    mod plans;
    mod text;
    mod user_permits;
}

mod files {
    mod changes;
    mod conditional_requests;
    mod declared_types;
    mod deleted_files;
    pub mod disk_usage;
    mod downloads;
    mod file_faults;
    mod file_management;
    mod filenames;
    mod hostile_uploads;
    mod links;
    mod many_files;
    mod overtaken_changes;
    mod parallel_uploads;
    mod repeated_uploads;
    mod service_quota;
    mod shown_text;
    #[cfg(feature = "s3")]
    mod store;
    #[cfg(feature = "s3")]
    mod store_faults;
    mod uploads;
    mod young_accounts;
}

mod mail {
    mod mail_limits;
    mod notices;
}

mod openapi {
    mod code_samples;
    mod document;
    mod examples;
    mod inputs;
    mod reasons;
    mod refusals;
    pub mod scene;
}

mod scripts {
    mod nginx;
    mod nginx_limits;
    mod nginx_logs;
    mod package;
    mod run;
}

mod server {
    mod body_memory;
    mod header_bytes;
    mod http_server;
    mod lifecycle;
    mod memory;
    mod mutated_requests;
    mod nginx_comparison;
    mod overload;
    mod request_heads;
    mod slow_clients;
    mod small_host;
    mod stop;
}

mod start {
    mod full_disk;
    mod installation;
    mod production;
    mod settings;
    mod supervisor;
}

mod users {
    mod admin_credentials;
    mod daily_statistics;
    mod deleted_users;
    mod invitations;
    mod large_lists;
    mod last_admin;
    mod own_quotas;
    pub mod totals;
    mod user_lists;
    mod user_management;
}
