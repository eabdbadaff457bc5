//! Many files in one request, and the files that all users have published.

mod handlers;
mod statements;

pub use handlers::distinct_ids;

use crate::request::endpoint::Feature::PublicList;
use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("POST", ["uploads", "delete"]) => at("/uploads/delete", SignedIn(handlers::delete)),
        ("POST", ["uploads", "update"]) => at("/uploads/update", SignedIn(handlers::update)),
        ("GET", ["uploads", "public"]) => at("/uploads/public", SignedIn(handlers::list_public)).part_of(PublicList),
        _ => return None,
    };
    Some(endpoint)
}
