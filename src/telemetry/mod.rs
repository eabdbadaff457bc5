//! What the process tells about itself: log lines and metrics.

pub mod logging;
pub mod metrics;
