//! What the process reports about itself: log lines and metrics.

pub mod logging;
pub mod metrics;
