//! One request, from its head to its response. A module of this list uses only modules further down:
//!
//! - `pipeline`: all steps of a request, in order
//! - `router`: the table of endpoints, from path and method to handler
//! - `endpoint`: what the table consists of: handlers with their rules of access, methods, paths
//! - `handlers`: what the endpoints do
//! - `openapi`: the OpenAPI document, made of the router's table and of what handlers read and answer
//! - `middleware`: the steps before and after the handler, one function each, which do not use handlers
//! - `context`: what handlers and middleware are given

pub mod context;
mod endpoint;
mod handlers;
mod middleware;
mod openapi;
pub mod pipeline;
mod router;

use crate::config::Config;

/// The OpenAPI document of a service with these settings, as JSON.
pub fn openapi_document(config: &Config) -> String {
    openapi::document(config, &router::endpoints(config))
}
