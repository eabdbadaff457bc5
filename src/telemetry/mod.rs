//! Log lines and metrics of the process.

pub mod access_log;
mod flood;
mod journal;
pub mod logging;
pub mod metrics;
pub mod outage;
