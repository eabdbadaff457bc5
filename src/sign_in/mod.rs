//! Registration, sign-in, refresh of tokens, sign-out, and password resets.

mod handlers;
pub mod statements;

#[cfg(feature = "oidc")]
pub use handlers::{check_code, new_session, open_session, token_response};

use crate::request::endpoint::Feature::{PasswordResets, Registration};
use crate::request::endpoint::Handler::{Anyone, Refresh, User};
use crate::request::endpoint::{Endpoint, at};
use crate::request::limits::Limit::{Account, Auth};
use crate::request::limits::REFRESH;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("POST", ["auth", "register"]) => at("/auth/register", Anyone(handlers::register))
            .limit(Auth("register")).part_of(Registration),
        ("POST", ["auth", "login"]) => at("/auth/login", Anyone(handlers::login)).limit(Auth("login")),
        ("POST", ["auth", "refresh"]) => at("/auth/refresh", Refresh(handlers::refresh)).limit(REFRESH),
        ("POST", ["auth", "refresh-token"]) => at("/auth/refresh-token", Refresh(handlers::refresh)).limit(REFRESH),
        ("POST", ["auth", "logout"]) => at("/auth/logout", User(handlers::logout)).limit(Account),
        ("POST", ["auth", "request-password-reset"]) =>
            at("/auth/request-password-reset", Anyone(handlers::request_password_reset))
                .limit(Auth("request-password-reset")).part_of(PasswordResets),
        ("POST", ["auth", "reset-password"]) => at("/auth/reset-password", Anyone(handlers::reset_password))
            .limit(Auth("reset-password")).part_of(PasswordResets),
        _ => return None,
    };
    Some(endpoint)
}
