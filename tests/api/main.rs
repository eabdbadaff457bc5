//! Black-box tests: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod accounts;
mod administration;
mod bad_input;
mod database;
mod downloads;
mod exports;
mod file_faults;
mod forms;
mod harness;
mod lifecycle;
mod limits;
mod outage;
mod production;
mod protocol;
mod raw;
mod resets;
mod server;
mod sessions;
mod settings;
mod siege;
mod structure;
mod test_only;
mod tokens;
mod uploads;
