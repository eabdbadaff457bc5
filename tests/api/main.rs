//! Black-box tests: the real binary, real HTTP, a real PostgreSQL. Run them with `scripts/test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accounts;
mod front;
mod harness;
mod lifecycle;
mod outage;
mod raw;
mod siege;
mod tokens;
