//! Undo: deleted files can be restored for some days, one by one, or all since a moment.

mod handlers;
mod statements;

pub use handlers::{deletion, is_asked_for, list};

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    match (method, path) {
        ("POST", ["uploads", "restore"]) => {
            Some(at("/uploads/restore", SignedIn(handlers::restore_since)))
        }
        // The word is no id.
        (_, ["uploads", "restore", ..]) => None,
        ("POST", ["uploads", _, "restore"]) => {
            Some(at("/uploads/{file_id}/restore", SignedIn(handlers::restore)))
        }
        _ => None,
    }
}
