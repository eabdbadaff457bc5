//! Undo: deleted files can be restored for some days, one by one, or all since a moment.

mod handlers;
mod statements;

pub use handlers::{deletion, is_asked_for, list};

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at, is_file_id};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("POST", ["uploads", "restore"]) => at("/uploads/restore", SignedIn(handlers::restore_since)),
        ("POST", ["uploads", id, "restore"]) if is_file_id(id) =>
            at("/uploads/{file_id}/restore", SignedIn(handlers::restore)),
        _ => return None,
    };
    Some(endpoint)
}
