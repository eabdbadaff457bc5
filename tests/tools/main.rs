//! Black-box tests of the commands that an operator runs, such as `backup` and `check`: the real binary and a real
//! PostgreSQL. Run them with `scripts/test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../harness/mod.rs"]
mod harness;

mod audit;
mod backup;
mod backup_faults;
mod backup_links;
mod check;
mod command_line;
mod create_admin;
mod damaged_backups;
mod database_passwords;
mod doctor;
mod garbage_collection;
mod hard_links;
mod import_files;
mod import_users;
mod lost_contents;
mod mail_delivery;
mod postgres_programs;
mod restore;
mod restore_faults;
mod second_factors;
mod session_settings;
#[cfg(feature = "s3")]
mod store;
