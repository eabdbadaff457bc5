//! Uploads that may come in several requests, so that one that broke goes on where it stood: tus 1.0.0
//! (https://tus.io/protocols/resumable-upload) with its extensions creation, creation-with-upload, expiration and
//! termination; for users, and by links to send files by.

mod by_link;
mod completion;
mod handlers;
mod metadata;
pub mod statements;
mod writing;

use crate::request::endpoint::Handler::{Anyone, SignedIn};
use crate::request::endpoint::{Endpoint, at};
use crate::request::limits::Limit::{Links, Upload};

/// The endpoints of this module. `HEAD` has those of `GET`.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["uploads", "partial"]) => at("/uploads/partial", SignedIn(handlers::list)),
        ("POST", ["uploads", "partial"]) => at("/uploads/partial", SignedIn(handlers::create)).limit(Upload),
        ("GET", ["uploads", "partial", _]) => at("/uploads/partial/{upload_id}", SignedIn(handlers::show)),
        ("PATCH", ["uploads", "partial", _]) => at("/uploads/partial/{upload_id}", SignedIn(handlers::append)),
        ("DELETE", ["uploads", "partial", _]) => at("/uploads/partial/{upload_id}", SignedIn(handlers::delete)),
        // Once its link is found, a request counts for that.
        ("POST", ["links", _, "partial"]) =>
            at("/links/{token}/partial", Anyone(by_link::create)).limit(Links).without_key(),
        ("GET", ["links", _, "partial", _]) =>
            at("/links/{token}/partial/{upload_id}", Anyone(by_link::show)).limit(Links).without_key(),
        ("PATCH", ["links", _, "partial", _]) =>
            at("/links/{token}/partial/{upload_id}", Anyone(by_link::append)).limit(Links).without_key(),
        ("DELETE", ["links", _, "partial", _]) =>
            at("/links/{token}/partial/{upload_id}", Anyone(by_link::delete)).limit(Links).without_key(),
        _ => return None,
    };
    Some(endpoint)
}
