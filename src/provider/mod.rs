//! Sign-in by an OpenID provider: a browser goes there and comes back with a code, which proves an identity once. What
//! the code is good for is up to the endpoint that takes it.

mod accounts;
pub mod code;
mod round_trip;
mod statements;

use crate::request::endpoint::Feature::Provider;
use crate::request::endpoint::Handler::{Anyone, User};
use crate::request::endpoint::{Endpoint, at};
use crate::request::limits::Limit::{Auth, Provider as PerMinute};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["auth", "oidc", "start"]) => at("/auth/oidc/start", Anyone(round_trip::start))
            .limit(PerMinute("oidc-start")).without_key(),
        ("GET", ["auth", "oidc", "callback"]) => at("/auth/oidc/callback", Anyone(round_trip::callback))
            .limit(PerMinute("oidc-callback")).without_key(),
        ("POST", ["auth", "oidc", "token"]) => at("/auth/oidc/token", Anyone(accounts::sign_in))
            .limit(PerMinute("oidc-token")),
        ("POST", ["auth", "oidc", "join"]) => at("/auth/oidc/join", User(accounts::join)).limit(Auth("oidc-join")),
        ("DELETE", ["auth", "oidc"]) => at("/auth/oidc", User(accounts::leave)).limit(Auth("oidc-leave")),
        _ => return None,
    };
    Some(endpoint.part_of(Provider))
}
