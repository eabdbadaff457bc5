//! Links to a file, to several, or to a folder: whoever has a link can download the files, without an account. And
//! links by which anyone can send files to a folder.

mod download;
pub mod handlers;
mod outcome;
pub mod sending;
mod several;
mod statements;

use crate::model::rules;
use crate::request::endpoint::Handler::{Anyone, SignedIn};
use crate::request::endpoint::{Endpoint, at, is_file_id};
use crate::request::limits::Limit::Links;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        (_, ["uploads", word, ..]) if !is_file_id(word) => return None,
        ("GET", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(handlers::list)),
        ("POST", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(handlers::create)),
        ("DELETE", ["uploads", _, "links", _]) => at("/uploads/{file_id}/links/{link_id}", SignedIn(handlers::delete)),
        ("GET", ["links"]) => at("/links", SignedIn(handlers::list_own)),
        ("POST", ["links"]) => at("/links", SignedIn(handlers::create_for)),
        ("DELETE", ["links", _]) => at("/links/{token}", SignedIn(handlers::end)),
        ("GET", ["links", _]) => at("/links/{token}", Anyone(download::open)).limit(Links).without_key(),
        // Once its link is found, a request counts for that.
        ("POST", ["links", _, "files"]) =>
            at("/links/{token}/files", Anyone(sending::receive)).limit(Links).without_key(),
        // What may follow is the name under which programs save what they download, or one of several files, and then
        // that.
        ("GET", ["links", _, file, name @ ..]) if name.is_empty() || name.len() == 1 && rules::uuid(file).is_ok() =>
            at("/links/{token}/{file_id}", Anyone(download::open)).limit(Links).without_key(),
        _ => return None,
    };
    Some(endpoint)
}
