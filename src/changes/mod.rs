//! The changes of a user's files, by which clients keep copies of them.

mod handlers;
mod statements;

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoint of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    match (method, path) {
        ("GET", ["changes"]) => Some(at("/changes", SignedIn(handlers::list))),
        _ => None,
    }
}
