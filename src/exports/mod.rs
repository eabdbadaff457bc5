//! Exports of accounts as CSV.

pub mod handlers;
mod statements;

use crate::request::endpoint::Handler::Export;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["users", "export"]) => at("/users/export", Export(handlers::filtered)),
        ("GET", ["users", "exports", "csv"]) => at("/users/exports/csv", Export(handlers::filtered)),
        ("GET", ["users", "export-full"]) => at("/users/export-full", Export(handlers::full)),
        ("GET", ["users", "export-alive"]) => at("/users/export-alive", Export(handlers::alive)),
        ("GET", ["users", "export-simple"]) => at("/users/export-simple", Export(handlers::simple)),
        _ => return None,
    };
    Some(endpoint)
}
