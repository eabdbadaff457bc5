//! The confirmation of e-mail addresses by the link of a mail.

mod handlers;
mod statements;

pub use handlers::{register, seal_change};

use crate::request::endpoint::Feature::EmailConfirmation;
use crate::request::endpoint::Handler::Anyone;
use crate::request::endpoint::{Endpoint, at};
use crate::request::limits::Limit::Auth;

/// The endpoint of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("POST", ["auth", "confirm-email"]) => at("/auth/confirm-email", Anyone(handlers::confirm))
            .limit(Auth("confirm-email")).part_of(EmailConfirmation),
        _ => return None,
    };
    Some(endpoint)
}
