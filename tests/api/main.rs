//! Black-box tests of the service: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`. A
//! folder has the tests of the module of that name in `src/`. Those in `extras` are of several modules, of which the
//! core build lacks some; `scripts/test --core` has the list of the folders that test what it has.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../harness/mod.rs"]
mod harness;

mod advisories;
mod pages;
mod structure;

mod accounts {
    mod current_password;
    mod deleted_users;
    mod invitations;
    mod large_lists;
    mod last_admin;
    mod own_account;
    mod own_quotas;
    mod test_only;
    pub mod totals;
    mod user_lists;
    mod user_management;
}

#[cfg(feature = "extras")]
mod archive {
    pub mod zip;
}

mod audit {
    mod agreement;
    mod events;
    mod failures;
    mod limits;
    mod log;
    #[cfg(feature = "extras")]
    mod partial;
    mod tour;
}

mod background {
    mod batches;
}

mod changes {
    mod feed;
}

mod confirmation {
    mod email_changes;
    mod limits;
    mod registrations;
    mod tokens;
}

mod db {
    mod database;
    mod degraded;
    mod indexes;
    mod locks;
    mod migrations;
    mod outage;
    mod session_settings;
    mod text;
    mod user_permits;
}

mod exports {
    mod batches;
    mod users;
}

mod extras {
    mod daily_statistics;
    mod ends;
    mod export_rights;
    mod held_requests;
    mod overtaken;
    pub mod pages;
    mod plans;
    mod races;
    mod refused_passwords;
}

mod files {
    mod conditional_requests;
    pub mod declared_types;
    mod downloads;
    mod file_faults;
    mod file_management;
    mod filenames;
    mod hostile_uploads;
    #[cfg(feature = "extras")]
    mod many_at_once;
    mod many_files;
    pub mod parallel_uploads;
    mod service_quota;
    #[cfg(feature = "s3")]
    pub mod store;
    #[cfg(feature = "s3")]
    mod store_faults;
    mod undeclared_types;
    mod uploads;
    pub mod uploads_under_way;
    mod young_accounts;
}

#[cfg(feature = "extras")]
mod folders {
    mod files_in_folders;
    mod folder_changes;
    mod hostile_folders;
    mod lists;
}

mod http {
    mod bad_input;
    mod encodings;
    mod fields;
}

mod links {
    mod access;
    #[cfg(feature = "extras")]
    mod ends_of_several;
    #[cfg(feature = "extras")]
    mod received;
    #[cfg(feature = "extras")]
    mod sending;
    #[cfg(feature = "extras")]
    mod sending_attacks;
    #[cfg(feature = "extras")]
    mod sending_limits;
    #[cfg(feature = "extras")]
    mod several;
    mod shown_text;
}

mod mail {
    mod mail_limits;
    mod notices;
    mod outbox;
}

mod openapi {
    mod code_samples;
    pub mod document;
    mod examples;
    mod inputs;
    mod reasons;
    mod refusals;
    pub mod scene;
}

#[cfg(feature = "extras")]
mod partial {
    mod by_link;
    pub mod going_on;
    mod processes;
    mod quotas;
    pub mod uploads;
}

mod personal_tokens {
    mod admin_credentials;
    mod tokens;
}

#[cfg(feature = "oidc")]
mod provider {
    mod callback;
    mod causes;
    mod company;
    mod identity;
    mod outage;
    mod rules;
    mod settings;
    mod start;
    mod token;
}

mod repeats {
    mod repeated_uploads;
}

mod scripts {
    mod package;
    mod run;
}

mod second_factor {
    mod codes;
    mod secrets;
    mod setup;
}

mod server {
    mod body_memory;
    mod buffering_proxies;
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

mod service {
    pub mod access;
    mod address_limits;
    mod api_keys;
    mod features;
    mod metrics;
    mod protocol;
    pub mod rate_limits;
    mod trusted_pages;
    mod turns;
}

mod sessions {
    mod limits;
    mod lists;
    mod view_tokens;
}

mod sign_in {
    mod earlier_clients;
    mod failed_sign_ins;
    #[cfg(feature = "extras")]
    mod imported_checks;
    mod imported_hashes;
    mod key_rotation;
    pub mod password_forms;
    mod resets;
    pub mod revocations;
    mod session_limit;
    mod session_lookups;
    mod sessions;
    pub mod tokens;
}

mod start {
    #[cfg(feature = "tools")]
    mod adoption;
    mod full_disk;
    mod installation;
    mod production;
    mod settings;
    mod supervisor;
}

mod undo {
    mod disk_usage;
    mod overtaken_changes;
    mod restoring;
}
