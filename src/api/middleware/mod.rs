//! The steps around a handler, one plain function each. `api/pipeline.rs` calls them in order.

pub mod access_log;
pub mod api_key;
pub mod authenticate;
pub mod cors;
pub mod rate_limit;
