//! The changes of a user's files, by which clients keep copies of them.

mod handlers;
mod statements;

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoint of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["changes"]) => at("/changes", SignedIn(handlers::list)),
        _ => return None,
    };
    Some(endpoint)
}
