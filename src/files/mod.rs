//! The files of users: upload, list, download, change and delete.

#[cfg(feature = "extras")]
pub mod extras;
pub mod handlers;
pub mod record;
pub mod statements;
mod upload_form;

use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at, is_file_id};
use crate::request::limits::Limit::Upload;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["uploads"]) => at("/uploads", SignedIn(handlers::list)),
        ("POST", ["uploads"]) => at("/uploads", SignedIn(handlers::create)).limit(Upload),
        (_, ["uploads", word, ..]) if !is_file_id(word) => return None,
        ("GET", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(handlers::show)),
        ("PUT", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(handlers::update)),
        ("DELETE", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(handlers::delete)),
        ("GET", ["uploads", _, "download"]) => at("/uploads/{file_id}/download", SignedIn(handlers::download)),
        _ => return None,
    };
    Some(endpoint)
}
