//! Black-box tests: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accounts;
mod bad_input;
mod database;
mod downloads;
mod file_faults;
mod forms;
mod front;
mod harness;
mod house;
mod lifecycle;
mod limits;
mod outage;
mod protocol;
mod raw;
mod resets;
mod sessions;
mod settings;
mod siege;
mod tokens;
mod uploads;
