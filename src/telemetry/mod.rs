//! What the process reports about itself: log lines and metrics.

pub mod access_log;
pub mod logging;
pub mod metrics;
