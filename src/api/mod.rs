//! The API: one request from its head to its answer.

pub mod context;
pub mod handlers;
pub mod middleware;
pub mod pipeline;
pub mod router;
