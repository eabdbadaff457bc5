//! What calls a handler: one request, from its head to its response.
//!
//! - `pipeline`: all steps of a request, in order
//! - `router`: asks each module for its endpoints
//! - `health`: probes and metrics
//! - `cors`, `api_key`, `access_log`: the steps before and after the handler, one function each
//! - `extras`: the endpoints of the features beyond the specification, and the protocol of uploads in several requests

mod access_log;
mod api_key;
mod cors;
#[cfg(feature = "extras")]
mod extras;
mod health;
pub mod pipeline;
pub mod router;
