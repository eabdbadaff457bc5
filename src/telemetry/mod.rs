//! Log lines and metrics of the process.

pub mod access_log;
pub mod logging;
pub mod metrics;
pub mod outage;
