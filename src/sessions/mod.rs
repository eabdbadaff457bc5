//! Lists of sessions: users list and end their own, administrators those of any user.

mod handlers;
mod statements;

use crate::request::endpoint::Handler::{Admin, User};
use crate::request::endpoint::{Endpoint, at, is_user_id};
use crate::request::limits::Limit::Account;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["auth", "sessions"]) => at("/auth/sessions", User(handlers::list)).limit(Account),
        ("DELETE", ["auth", "sessions", _]) => at("/auth/sessions/{session_id}", User(handlers::end)).limit(Account),
        ("POST", ["auth", "view-token"]) => at("/auth/view-token", User(handlers::view_token)),
        ("GET", ["users", id, "sessions"]) if is_user_id(id) =>
            at("/users/{user_id}/sessions", Admin(handlers::list_of_user)),
        ("DELETE", ["users", id, "sessions"]) if is_user_id(id) =>
            at("/users/{user_id}/sessions", Admin(handlers::end_all_of_user)),
        _ => return None,
    };
    Some(endpoint)
}
