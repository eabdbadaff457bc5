//! Second factors: one-time passwords (RFC 6238) and recovery codes.

pub mod code;
mod handlers;
mod reseal;
pub mod statements;
pub mod totp;

pub use reseal::{count_sealed, reseal_all};

use crate::request::endpoint::Handler::{Admin, User};
use crate::request::endpoint::{Endpoint, at, is_user_id};
use crate::request::limits::Limit::{Account, Auth};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["auth", "second-factor"]) => at("/auth/second-factor", User(handlers::show)).limit(Account),
        ("POST", ["auth", "second-factor"]) => at("/auth/second-factor", User(handlers::begin))
            .limit(Auth("begin-second-factor")),
        ("DELETE", ["auth", "second-factor"]) => at("/auth/second-factor", User(handlers::disable))
            .limit(Auth("disable-second-factor")),
        ("POST", ["auth", "second-factor", "confirm"]) =>
            at("/auth/second-factor/confirm", User(handlers::confirm)).limit(Account),
        ("POST", ["auth", "second-factor", "recovery-codes"]) =>
            at("/auth/second-factor/recovery-codes", User(handlers::renew_codes)).limit(Auth("recovery-codes")),
        ("DELETE", ["users", id, "second-factor"]) if is_user_id(id) =>
            at("/users/{user_id}/second-factor", Admin(handlers::reset)),
        _ => return None,
    };
    Some(endpoint)
}
