//! The steps before and after a handler, as plain functions. `api/pipeline.rs` runs them in order.

pub mod access_log;
pub mod api_key;
pub mod cors;
pub mod identity;
pub mod rate_limit;
