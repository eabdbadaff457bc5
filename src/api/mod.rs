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
//! - `waiters`: requests that wait for changes of files
//! - `pages`: the pages for people, with what they load
//! - `openapi`: the OpenAPI document

pub mod app;
mod context;
mod endpoint;
mod handlers;
mod middleware;
pub mod openapi;
mod pages;
pub mod pipeline;
mod router;
mod turns;
mod waiters;
