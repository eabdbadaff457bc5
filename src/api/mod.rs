//! One request, from its head to its response. A module of this list uses only modules further down:
//!
//! - `pipeline`: all steps of a request, in order
//! - `router`: the table of endpoints, from path and method to handler
//! - `endpoint`: the parts of a line of that table
//! - `handlers`: what the endpoints do
//! - `middleware`: the steps before and after the handler, one function each, which do not use handlers
//! - `context`: one request, as handlers and middleware are given it
//! - `app`: all that lives longer than a request
//! - `turns`: how many exports and searches one user or network may run at a time
//! - `openapi`: the OpenAPI document
//! - `console`: the files of the pages for people

pub mod app;
mod console;
mod context;
mod endpoint;
mod handlers;
mod middleware;
pub mod openapi;
pub mod pipeline;
mod router;
mod turns;
