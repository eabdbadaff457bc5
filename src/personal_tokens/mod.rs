//! Personal access tokens, by which scripts act for a user: users list, make and end their own, administrators list and
//! end those of any user.

mod handlers;
pub mod statements;

use crate::request::endpoint::Handler::{Admin, User};
use crate::request::endpoint::{Endpoint, at, is_user_id};
use crate::request::limits::Limit::Account;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["auth", "tokens"]) => at("/auth/tokens", User(handlers::list)).limit(Account),
        ("POST", ["auth", "tokens"]) => at("/auth/tokens", User(handlers::create)).limit(Account),
        ("DELETE", ["auth", "tokens", _]) => at("/auth/tokens/{token_id}", User(handlers::delete)).limit(Account),
        ("GET", ["users", id, "tokens"]) if is_user_id(id) =>
            at("/users/{user_id}/tokens", Admin(handlers::list_of_user)),
        ("DELETE", ["users", id, "tokens"]) if is_user_id(id) =>
            at("/users/{user_id}/tokens", Admin(handlers::delete_all_of_user)),
        _ => return None,
    };
    Some(endpoint)
}
