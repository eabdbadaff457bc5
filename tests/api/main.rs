//! Black-box tests: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod accounts;
mod administration;
mod bad_input;
mod database;
mod exports;
mod harness;
mod house;
mod limits;
mod production;
mod protocol;
mod resets;
mod sessions;
mod settings;
mod test_only;
mod tokens;
