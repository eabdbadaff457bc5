//! Links to files: whoever has a link can download the file, without an account.

mod handlers;
mod statements;

use crate::request::endpoint::Handler::{Anyone, SignedIn};
use crate::request::endpoint::{Endpoint, at};
use crate::request::limits::Limit::Links;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        (_, ["uploads", "restore", ..]) => return None, // The word is no id.
        ("GET", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(handlers::list)),
        ("POST", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(handlers::create)),
        ("DELETE", ["uploads", _, "links", _]) => at("/uploads/{file_id}/links/{link_id}", SignedIn(handlers::delete)),
        ("GET", ["links"]) => at("/links", SignedIn(handlers::list_own)),
        // What may follow is the name under which programs save the file, in place of the secret.
        ("GET", ["links", _] | ["links", _, _]) =>
            at("/links/{token}", Anyone(handlers::download)).limit(Links).without_key(),
        _ => return None,
    };
    Some(endpoint)
}
