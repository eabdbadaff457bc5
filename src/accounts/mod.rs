//! Accounts: a user's own, and those of all users for administrators, with lists and statistics.

mod admin;
#[cfg(feature = "extras")]
pub mod extras;
pub mod handlers;
mod me;
pub mod proof;
pub mod statements;
mod test_only;

use crate::request::endpoint::Feature::TestEndpoints;
use crate::request::endpoint::Handler::{SignedIn, SignedInAdmin, User};
use crate::request::endpoint::{Endpoint, at, is_user_id};
use crate::request::limits::Limit::Auth;

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["auth", "me"]) => at("/auth/me", SignedIn(me::show)),
        ("GET", ["users", "me"]) => at("/users/me", SignedIn(me::show)),
        ("PUT", ["users", "me"]) => at("/users/me", User(me::update)),
        ("POST", ["users", "change-password"]) => at("/users/change-password", User(me::change_password))
            .limit(Auth("change-password")),
        ("GET", ["users"]) => at("/users", SignedInAdmin(handlers::list)),
        ("POST", ["users"]) => at("/users", SignedInAdmin(handlers::create)),
        ("GET", ["users", id]) if is_user_id(id) => at("/users/{user_id}", SignedInAdmin(handlers::show)),
        ("PUT", ["users", id]) if is_user_id(id) => at("/users/{user_id}", SignedInAdmin(handlers::update)),
        ("DELETE", ["users", id]) if is_user_id(id) => at("/users/{user_id}", SignedInAdmin(handlers::delete)),
        ("GET", ["admin", "users"]) => at("/admin/users", SignedInAdmin(admin::list)),
        ("PUT", ["admin", "users", _]) => at("/admin/users/{user_id}", SignedInAdmin(handlers::update)),
        ("GET", ["admin", "stats"]) => at("/admin/stats", SignedInAdmin(admin::stats)),
        ("GET", ["users", "test-only", "alive"]) => at("/users/test-only/alive", SignedInAdmin(test_only::alive))
            .part_of(TestEndpoints),
        ("POST", ["users", "test-only", "create"]) => at("/users/test-only/create", SignedInAdmin(test_only::create))
            .part_of(TestEndpoints),
        ("DELETE", ["users", "test-only", "delete-all"]) =>
            at("/users/test-only/delete-all", SignedInAdmin(test_only::delete_all)).part_of(TestEndpoints),
        ("GET", ["users", "test-only", "count"]) => at("/users/test-only/count", SignedInAdmin(test_only::count))
            .part_of(TestEndpoints),
        _ => return None,
    };
    Some(endpoint)
}
