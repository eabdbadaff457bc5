//! Log lines and metrics of the process.

pub mod access_log;
mod flood;
pub mod logging;
pub mod metrics;
