//! Archives: many files as one ZIP, which is made while it is sent and whose bytes are always the same for the same
//! files, so that a download can be resumed.

mod body;
mod format;
mod handlers;
mod names;
mod plan;
mod statements;

pub use handlers::{ZIP, archive_name, archive_response, not_empty};
pub use statements::{ENTRY_MEMORY, Entry, Position, Selection, count, list};

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    let endpoint = match (method, path) {
        ("GET", ["uploads", "zip"]) => at("/uploads/zip", SignedIn(handlers::download)),
        _ => return None,
    };
    Some(endpoint)
}
