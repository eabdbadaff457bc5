//! The steps of the chain in `server.rs`: plain functions, one job each.

pub mod access_log;
pub mod api_key;
pub mod authenticate;
pub mod cors;
pub mod rate_limit;
pub mod request_id;
