//! One request, from its head to its response. Each module names only those below it:
//!
//! - `pipeline`: the steps of a request, in order
//! - `router`: the table of contents, from path and method to handler
//! - `handlers`: what endpoints do
//! - `middleware`: the steps before and after the handler, one function each
//! - `context`: what handlers are given

pub mod context;
mod handlers;
mod middleware;
pub mod pipeline;
mod router;
