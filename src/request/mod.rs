//! What a handler is given: all that outlives a request, the request, who is calling, and the limits. A module of this
//! list uses only modules further down:
//!
//! - `endpoint`: one line of the router's table
//! - `limits`: one table of all rate limits
//! - `identity`: finds out who is calling, and is the only maker of the proofs that handlers take
//! - `view_token`: finds the token in the address of a request
//! - `context`: one request
//! - `app`: all that lives longer than a request; `extras` is a part of it
//! - `sessions`, `personal_token`: find the user of an access token or of a personal access token
//! - `permits`, `link_permits`: how many exports and searches one user or network may run at a time, and how many long
//!   lists and uploads by links
//! - `waiters`: requests that wait for changes of files

pub mod app;
pub mod context;
pub mod endpoint;
#[cfg(feature = "extras")]
pub mod extras;
pub mod identity;
pub mod limits;
#[cfg(feature = "extras")]
pub mod link_permits;
pub mod permits;
#[cfg(feature = "extras")]
pub mod personal_token;
pub mod sessions;
#[cfg(feature = "extras")]
pub mod view_token;
#[cfg(feature = "extras")]
pub mod waiters;
#[cfg(not(feature = "extras"))]
mod without_extras;

#[cfg(not(feature = "extras"))]
pub use without_extras::{personal_token, view_token};
