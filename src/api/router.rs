//! The table of endpoints: every path with its methods and, for each of them, the handler, who may use it, the rate
//! limit it counts against, and what the OpenAPI document says about it. `Allow`, 405, `HEAD`, the names of endpoints
//! in the metrics and the document all follow from this table.

use std::borrow::Cow;

use super::context::RequestContext;
use super::endpoint::{
    Endpoint, Handler, Outcome, Route, admin, admin_at, delete, export, get, post, public, put,
    route, user, user_at,
};
use super::handlers::{
    admin, audit, auth, docs, exports, health, me, metrics, password_resets, personal_tokens,
    sessions, test_only, uploads, users,
};
use super::middleware::rate_limit::Limit;
use super::openapi::{DocumentedEndpoint, Operation};
use crate::config::{Config, Smtp};

/// Finds the route of a path. The path is split before its segments are decoded, so that an encoded slash does not
/// split a segment. One trailing slash is ignored. What is not UTF-8 is replaced: no literal segment has the character
/// that takes its place, and it makes an id invalid.
pub fn find(path: &str) -> Option<Route> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let decode = |segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
    let segments: Vec<Cow<str>> = path.split('/').map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    match segments.as_slice() {
        ["api", "v1", rest @ ..] => api_v1(rest).map(|route| route.below("/api/v1")),
        segments => at_root(segments).or_else(|| page(segments)),
    }
}

/// Whether a path is `/api/v1` or below it, also if no route has it.
pub fn is_api(path: &str) -> bool {
    let mut segments = path.split('/').map(percent_encoding::percent_decode_str);
    ["", "api", "v1"].iter().all(|name| segments.next().is_some_and(|s| s.eq(name.bytes())))
}

/// All endpoints that the settings enable, for the OpenAPI document.
pub fn endpoints(config: &Config) -> Vec<DocumentedEndpoint> {
    let below_api = api_v1_routes().into_iter().map(|route| route.below("/api/v1"));
    let enabled = below_api.chain(root_routes()).filter(|route| (route.is_enabled)(config));
    enabled.flat_map(Route::documented).collect()
}

/// Makes two functions of one table: `$find` returns the route whose pattern matches the segments of a path, `$all`
/// returns all routes.
macro_rules! routes {
    ($find:ident, $all:ident, { $($pattern:pat $(if $guard:expr)? => $route:expr,)* }) => {
        fn $find(segments: &[&str]) -> Option<Route> {
            let route = match segments {
                $($pattern $(if $guard)? => $route,)*
                _ => return None,
            };
            Some(route.matched(segments))
        }

        fn $all() -> Vec<Route> {
            vec![$($route,)*]
        }
    };
}

routes!(at_root, root_routes, {
    ["healthz"] => route("/healthz", const { &[get(public(health::alive), &health::ALIVE)] }),
    ["readyz"] => route("/readyz", const { &[get(public(health::ready), &health::READY)] }),
    ["metrics"] => route("/metrics", const { &[get(public(metrics::show), &metrics::SHOW)] }),
    ["openapi.json"] => route("/openapi.json", const { &[get(public(docs::openapi), &docs::OPENAPI)] })
        .enabled_if(offers_docs),
});

// The routes below `/api/v1`. Literal segments stand before ids, so that a literal is never taken for an id.
routes!(api_v1, api_v1_routes, {
    ["auth", "register"] => route("/auth/register", const { &[
        post(public(auth::register), &auth::REGISTER).limit(Limit::Auth("register")),
    ] }),
    ["auth", "login"] => route("/auth/login", const { &[
        post(public(auth::login), &auth::LOGIN).limit(Limit::Auth("login")),
    ] }),
    ["auth", "refresh"] => route("/auth/refresh", const { &[
        post(Handler::Refresh(auth::refresh), &auth::REFRESH).limit(Limit::Auth("refresh")),
    ] }),
    ["auth", "logout"] => route("/auth/logout", const { &[
        post(user(auth::logout), &auth::LOGOUT).no_personal_tokens(),
    ] }),
    ["auth", "request-password-reset"] => route("/auth/request-password-reset", const { &[
        post(public(password_resets::request), &password_resets::REQUEST).limit(Limit::Auth("request-password-reset")),
    ] }).enabled_if(offers_password_resets),
    ["auth", "reset-password"] => route("/auth/reset-password", const { &[
        post(public(password_resets::reset), &password_resets::RESET).limit(Limit::Auth("reset-password")),
    ] }).enabled_if(offers_password_resets),
    ["auth", "sessions"] => route("/auth/sessions", const { &[
        get(user(sessions::list), &sessions::LIST).no_personal_tokens(),
    ] }),
    ["auth", "sessions", _] => route("/auth/sessions/{session_id}", const { &[
        delete(user_at(sessions::end), &sessions::END).no_personal_tokens(),
    ] }),
    ["auth", "tokens"] => route("/auth/tokens", const { &[
        get(user(personal_tokens::list), &personal_tokens::LIST).no_personal_tokens(),
        post(user(personal_tokens::create), &personal_tokens::CREATE).no_personal_tokens(),
    ] }),
    ["auth", "tokens", _] => route("/auth/tokens/{token_id}", const { &[
        delete(user_at(personal_tokens::delete), &personal_tokens::DELETE).no_personal_tokens(),
    ] }),
    ["auth", "me"] => route("/auth/me", const { &[get(user(me::show), &me::SHOW_AT_AUTH)] }),

    ["users", "me"] => route("/users/me", const { &[
        get(user(me::show), &me::SHOW), put(user(me::update), &me::UPDATE).no_personal_tokens(),
    ] }),
    ["users", "me", "delete"] => route("/users/me/delete", const { &[
        post(user(me::delete), &me::DELETE).limit(Limit::Auth("delete-account")).no_personal_tokens(),
    ] }),
    ["users", "change-password"] => route("/users/change-password", const { &[
        post(user(me::change_password), &me::CHANGE_PASSWORD)
            .limit(Limit::Auth("change-password"))
            .no_personal_tokens(),
    ] }),
    ["users", "export"] => route("/users/export", const { &[get(export(exports::filtered), &exports::FILTERED)] }),
    ["users", "exports", "csv"] => route("/users/exports/csv", const { &[
        get(export(exports::filtered), &exports::FILTERED_AT_CSV),
    ] }),
    ["users", "export-full"] => route("/users/export-full", const { &[get(export(exports::full), &exports::FULL)] }),
    ["users", "export-alive"] => route("/users/export-alive", const { &[
        get(export(exports::alive), &exports::ALIVE),
    ] }),
    ["users", "export-simple"] => route("/users/export-simple", const { &[
        get(export(exports::simple), &exports::SIMPLE),
    ] }),
    ["users", "test-only", "alive"] => route("/users/test-only/alive", const { &[
        get(admin(test_only::alive), &test_only::ALIVE),
    ] }).enabled_if(offers_test_endpoints),
    ["users", "test-only", "create"] => route("/users/test-only/create", const { &[
        post(admin(test_only::create), &test_only::CREATE),
    ] }).enabled_if(offers_test_endpoints),
    ["users", "test-only", "delete-all"] => route("/users/test-only/delete-all", const { &[
        delete(admin(test_only::delete_all), &test_only::DELETE_ALL),
    ] }).enabled_if(offers_test_endpoints),
    ["users", "test-only", "count"] => route("/users/test-only/count", const { &[
        get(admin(test_only::count), &test_only::COUNT),
    ] }).enabled_if(offers_test_endpoints),
    ["users"] => route("/users", const { &[
        get(admin(users::list), &users::LIST), post(admin(users::create), &users::CREATE),
    ] }),
    ["users", id] if !is_literal(id) => route("/users/{user_id}", const { &[
        get(admin_at(users::show), &users::SHOW),
        put(admin_at(users::update), &users::UPDATE),
        delete(admin_at(users::delete), &users::DELETE),
    ] }),
    ["users", id, "sessions"] if !is_literal(id) => route("/users/{user_id}/sessions", const { &[
        get(admin_at(sessions::list_of_user), &sessions::LIST_OF_USER).no_personal_tokens(),
        delete(admin_at(sessions::end_all_of_user), &sessions::END_ALL_OF_USER).no_personal_tokens(),
    ] }),
    ["users", id, "tokens"] if !is_literal(id) => route("/users/{user_id}/tokens", const { &[
        get(admin_at(personal_tokens::list_of_user), &personal_tokens::LIST_OF_USER).no_personal_tokens(),
        delete(admin_at(personal_tokens::delete_all_of_user), &personal_tokens::DELETE_ALL_OF_USER)
            .no_personal_tokens(),
    ] }),
    ["admin", "users"] => route("/admin/users", const { &[get(admin(admin::list), &admin::LIST)] }),
    ["admin", "users", _] => route("/admin/users/{user_id}", const { &[
        put(admin_at(users::update), &admin::UPDATE_USER),
    ] }),
    ["admin", "audit"] => route("/admin/audit", const { &[get(admin(audit::list), &audit::LIST)] }),
    ["admin", "audit", "export"] => route("/admin/audit/export", const { &[
        get(admin(audit::export), &audit::EXPORT),
    ] }),
    ["admin", "stats"] => route("/admin/stats", const { &[get(admin(admin::stats), &admin::STATS)] }),

    ["uploads"] => route("/uploads", const { &[
        get(user(uploads::list), &uploads::LIST),
        post(user(uploads::create), &uploads::CREATE).limit(Limit::Upload),
    ] }),
    ["uploads", _] => route("/uploads/{file_id}", const { &[
        get(user_at(uploads::show), &uploads::SHOW),
        put(user_at(uploads::update), &uploads::UPDATE),
        delete(user_at(uploads::delete), &uploads::DELETE),
    ] }),
    ["uploads", _, "download"] => route("/uploads/{file_id}/download", const { &[
        get(user_at(uploads::download), &uploads::DOWNLOAD),
    ] }),
});

/// Whether a segment after `/users` is the beginning of another path, so that it is not the id of a user either.
fn is_literal(segment: &str) -> bool {
    let literals = ["me", "change-password", "exports", "test-only"];
    literals.contains(&segment) || segment.starts_with("export-") || segment == "export"
}

fn offers_password_resets(config: &Config) -> bool {
    !matches!(config.smtp, Smtp::Off)
}

fn offers_test_endpoints(config: &Config) -> bool {
    config.test_endpoints_enabled
}

fn offers_docs(config: &Config) -> bool {
    config.docs
}

/// The pages that show the OpenAPI document, and what they load. They are not a part of the API that it describes.
fn page(segments: &[&str]) -> Option<Route> {
    let route = match segments {
        [""] => route("/", const { &[file(docs::root)] }),
        ["docs"] => route("/docs", const { &[file(docs::swagger_ui)] }),
        ["docs", "start.js"] => route("/docs/start.js", const { &[file(docs::start_script)] }),
        ["docs", "style.css"] => route("/docs/style.css", const { &[file(docs::style_sheet)] }),
        ["docs", "swagger-ui.js"] => {
            route("/docs/swagger-ui.js", const { &[file(docs::swagger_ui_script)] })
        }
        ["docs", "swagger-ui.css"] => {
            route("/docs/swagger-ui.css", const { &[file(docs::swagger_ui_style)] })
        }
        ["docs", "licenses.txt"] => route("/docs/licenses.txt", const { &[file(docs::licenses)] }),
        ["redoc"] => route("/redoc", const { &[file(docs::redoc)] }),
        ["redoc", "redoc.js"] => route("/redoc/redoc.js", const { &[file(docs::redoc_script)] }),
        _ => return None,
    };
    Some(route.enabled_if(offers_docs))
}

/// An endpoint that sends a page or a file that a page loads.
const fn file(handler: fn(&mut RequestContext) -> Outcome) -> Endpoint {
    get(public(handler), &Operation::EMPTY)
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use crate::error::{Error, FieldLocation};

    fn outcome(method: &str, path: &str) -> Result<(), String> {
        let route = find(path).ok_or("404")?;
        route.endpoint(method).map(drop).ok_or_else(|| route.methods())
    }

    #[test]
    fn names_of_endpoints_contain_no_ids() {
        for (method, path, expected) in [
            ("HEAD", "/api/v1/users/me", "GET /api/v1/users/me"),
            ("GET", "/api/v1/users/7", "GET /api/v1/users/{user_id}"),
            ("PUT", "/api/v1/admin/users/users/", "PUT /api/v1/admin/users/{user_id}"),
            ("GET", "/api/v1/uploads/me/download", "GET /api/v1/uploads/{file_id}/download"),
            ("GET", "/api/v1/users/test-only/count", "GET /api/v1/users/test-only/count"),
            ("GET", "/readyz/", "GET /readyz"),
        ] {
            let route = find(path).expect(path);
            let endpoint = route.endpoint(method).expect(method);
            assert_eq!(route.name(endpoint).to_string(), expected);
        }
    }

    #[test]
    fn an_id_that_is_not_a_uuid_is_reported_with_its_name() {
        let outcome = find("/api/v1/uploads/7/download").expect("a route").parse_id();
        let Err(Error::Invalid(errors)) = outcome else {
            panic!("not refused");
        };
        assert_eq!((errors[0].location, errors[0].field), (FieldLocation::Path, Some("file_id")));
    }

    #[test]
    fn paths_are_split_before_they_are_decoded() {
        for (method, path, expected) in [
            ("GET", "/api/v1/users/me", Ok(())),
            ("GET", "/api/v1/users/me/", Ok(())),
            ("HEAD", "/api/v1/users/me", Ok(())),
            ("GET", "/api/v1/%75sers/me", Ok(())),
            ("GET", "/api/v1/users%2Fme", Err("404")),
            ("GET", "/api/v1/users/me//", Err("404")),
            ("GET", "//api/v1/users/me", Err("404")),
            ("GET", "/api/v1/users/m%ff", Ok(())),
            ("GET", "/api/v1/users/m%ff/x", Err("404")),
            ("GET", "/api/v1/%ff", Err("404")),
            ("GET", "/", Ok(())),
            ("GET", "", Err("404")),
            ("GET", "/docs/", Ok(())),
            ("GET", "/docs/unknown.js", Err("404")),
            ("POST", "/redoc", Err("GET, HEAD")),
            ("GET", "*", Err("404")),
            ("PATCH", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/auth/login", Err("POST")),
            ("get", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("DELETE", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/users/change-password", Err("POST")),
            ("DELETE", "/api/v1/users/export", Err("GET, HEAD")),
            ("GET", "/api/v1/users/exports", Err("404")),
            ("GET", "/api/v1/users/me/sessions", Err("404")),
            ("GET", "/api/v1/users/no-id/sessions", Ok(())),
            ("POST", "/api/v1/users/no-id/tokens", Err("GET, HEAD, DELETE")),
            ("DELETE", "/api/v1/users/test-only", Err("404")),
            ("GET", "/api/v1/users/test-only/delete-all", Err("DELETE")),
            ("GET", "/api/v1/users/no-id", Ok(())),
            ("POST", "/api/v1/users/no-id", Err("GET, HEAD, PUT, DELETE")),
        ] {
            assert_eq!(outcome(method, path), expected.map_err(str::to_owned), "{method} {path}");
        }
    }
}
