//! The audit log as administrators read it. Events of changes are written by the statements that make the changes.

mod handlers;
pub mod statements;

use crate::request::endpoint::Handler::SignedInAdmin;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["admin", "audit"]) => at("/admin/audit", SignedInAdmin(handlers::list)),
        ("GET", ["admin", "audit", "export"]) => at("/admin/audit/export", SignedInAdmin(handlers::export)),
        _ => return None,
    };
    Some(endpoint)
}
