//! The table of endpoints, a line each: method, path, handler with who may enter, and rate limit. `Allow`, 405, `HEAD`
//! and the names of endpoints in the metrics follow from it.

use std::borrow::Cow;

use super::context::RequestContext;
use super::endpoint::Feature::{
    Console, Docs, EmailConfirmation, Metrics, PasswordResets, Registration, Start, TestEndpoints,
};
use super::endpoint::Handler::{Admin, Anyone, Export, Refresh, SignedIn, SignedInAdmin, User};
use super::endpoint::{Endpoint, Outcome, at};
use super::handlers::{
    admin, auth, changes, email_confirmation, exports, health, links, me, personal_tokens,
    second_factor, sessions, test_only, uploads, users,
};
use super::middleware::rate_limit::{LOGIN, Limit, REFRESH};
use crate::config::Config;
use crate::error::Error;

/// The methods that endpoints have, in the order in which `Allow` lists them.
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

/// Finds the endpoint for the method and the path of a request, whose client is on this host if `is_local`. `HEAD` has
/// the endpoint of `GET`. Fails with [`Error::RouteNotFound`] if no endpoint has the path, with that or
/// [`Error::FeatureOff`] if the settings switch it off, and with [`Error::MethodNotAllowed`] if endpoints for other
/// methods have it.
///
/// The path is split before its segments are decoded, so that an encoded slash does not split a segment. One trailing
/// slash is ignored. Bytes that are not UTF-8 are replaced: no literal segment has the character that takes their
/// place, and it makes an id invalid.
pub fn find(config: &Config, is_local: bool, method: &str, path: &str) -> Result<Endpoint, Error> {
    let path = path.strip_prefix('/').ok_or(Error::RouteNotFound { has_docs: config.docs })?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let decode = |segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
    let segments: Vec<Cow<str>> = path.split('/').map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let method = if method == "HEAD" { "GET" } else { method };
    match endpoint(method, &segments) {
        Some(endpoint) if endpoint.feature.is_on(config, is_local) => Ok(endpoint),
        Some(endpoint) => Err(endpoint.feature.refusal(config)),
        None => Err(no_endpoint(config, is_local, &segments)),
    }
}

/// The error of a request whose path has no endpoint for its method.
fn no_endpoint(config: &Config, is_local: bool, segments: &[&str]) -> Error {
    let others: Vec<_> = METHODS.iter().filter_map(|method| endpoint(method, segments)).collect();
    match others.first() {
        None => Error::RouteNotFound { has_docs: config.docs },
        Some(endpoint) if !endpoint.feature.is_on(config, is_local) => {
            endpoint.feature.refusal(config)
        }
        Some(_) => {
            let methods = others.iter().map(|endpoint| endpoint.name.method);
            let methods = methods.map(|method| if method == "GET" { "GET, HEAD" } else { method });
            Error::MethodNotAllowed(methods.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whether a path is `/api/v1` or below it, also if no endpoint has it.
pub fn is_api(path: &str) -> bool {
    let mut segments = path.split('/').map(percent_encoding::percent_decode_str);
    ["", "api", "v1"].iter().all(|name| segments.next().is_some_and(|s| s.eq(name.bytes())))
}

/// The endpoint for a method, which is not `HEAD`, and the segments of a path.
fn endpoint(method: &str, segments: &[&str]) -> Option<Endpoint> {
    let method = METHODS.into_iter().find(|known| *known == method)?;
    let (endpoint, prefix, segments) = match segments {
        ["api", "v1", rest @ ..] => (api_v1(method, rest), "/api/v1", rest),
        _ => (root(method, segments).or_else(|| pages(method, segments)), "", segments),
    };
    Some(endpoint?.matched(method, prefix, segments))
}

/// Probes, metrics and the OpenAPI document.
fn root(method: &str, segments: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, segments) {
        ("GET", ["healthz"]) => at("/healthz", Anyone(health::alive)).unlimited().without_key(),
        ("GET", ["readyz"]) => at("/readyz", Anyone(health::ready)).unlimited().without_key(),
        ("GET", ["metrics"]) => at("/metrics", Anyone(health::metrics)).unlimited().without_key().part_of(Metrics),
        ("GET", ["openapi.json"]) => at("/openapi.json", Anyone(page)).unlimited().without_key().part_of(Docs),
        _ => return None,
    };
    Some(endpoint)
}

/// The endpoints below `/api/v1`. Those with a path of literals stand before those with an id.
fn api_v1(method: &str, segments: &[&str]) -> Option<Endpoint> {
    use Limit::{Account, Auth, Links, Upload};
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, segments) {
        ("POST", ["auth", "register"]) => at("/auth/register", Anyone(auth::register))
            .limit(Auth("register")).part_of(Registration),
        ("POST", ["auth", "login"]) => at("/auth/login", Anyone(auth::login)).limit(LOGIN),
        ("POST", ["auth", "refresh"]) => at("/auth/refresh", Refresh(auth::refresh)).limit(REFRESH),
        ("POST", ["auth", "refresh-token"]) => at("/auth/refresh-token", Refresh(auth::refresh)).limit(REFRESH),
        ("POST", ["auth", "logout"]) => at("/auth/logout", User(auth::logout)).limit(Account),
        ("POST", ["auth", "request-password-reset"]) =>
            at("/auth/request-password-reset", Anyone(auth::request_password_reset))
                .limit(Auth("request-password-reset")).part_of(PasswordResets),
        ("POST", ["auth", "reset-password"]) => at("/auth/reset-password", Anyone(auth::reset_password))
            .limit(Auth("reset-password")).part_of(PasswordResets),
        ("POST", ["auth", "confirm-email"]) => at("/auth/confirm-email", Anyone(email_confirmation::confirm))
            .limit(Auth("confirm-email")).part_of(EmailConfirmation),
        ("GET", ["auth", "sessions"]) => at("/auth/sessions", User(sessions::list))
            .limit(Account),
        ("DELETE", ["auth", "sessions", _]) => at("/auth/sessions/{session_id}", User(sessions::end))
            .limit(Account),
        ("GET", ["auth", "tokens"]) => at("/auth/tokens", User(personal_tokens::list))
            .limit(Account),
        ("POST", ["auth", "tokens"]) => at("/auth/tokens", User(personal_tokens::create))
            .limit(Account),
        ("DELETE", ["auth", "tokens", _]) => at("/auth/tokens/{token_id}", User(personal_tokens::delete))
            .limit(Account),
        ("GET", ["auth", "second-factor"]) => at("/auth/second-factor", User(second_factor::show))
            .limit(Account),
        ("POST", ["auth", "second-factor"]) => at("/auth/second-factor", User(second_factor::begin))
            .limit(Auth("begin-second-factor")),
        ("DELETE", ["auth", "second-factor"]) => at("/auth/second-factor", User(second_factor::disable))
            .limit(Auth("disable-second-factor")),
        ("POST", ["auth", "second-factor", "confirm"]) =>
            at("/auth/second-factor/confirm", User(second_factor::confirm)).limit(Account),
        ("POST", ["auth", "second-factor", "recovery-codes"]) =>
            at("/auth/second-factor/recovery-codes", User(second_factor::renew_codes))
            .limit(Auth("recovery-codes")),
        ("GET", ["auth", "me"]) => at("/auth/me", SignedIn(me::show)),
        ("GET", ["users", "me"]) => at("/users/me", SignedIn(me::show)),
        ("PUT", ["users", "me"]) => at("/users/me", User(me::update)),
        ("POST", ["users", "me", "delete"]) => at("/users/me/delete", User(me::delete))
            .limit(Auth("delete-account")),
        ("POST", ["users", "change-password"]) => at("/users/change-password", User(me::change_password))
            .limit(Auth("change-password")),
        ("GET", ["users", "export"]) => at("/users/export", Export(exports::filtered)),
        ("GET", ["users", "exports", "csv"]) => at("/users/exports/csv", Export(exports::filtered)),
        ("GET", ["users", "export-full"]) => at("/users/export-full", Export(exports::full)),
        ("GET", ["users", "export-alive"]) => at("/users/export-alive", Export(exports::alive)),
        ("GET", ["users", "export-simple"]) => at("/users/export-simple", Export(exports::simple)),
        ("GET", ["users", "test-only", "alive"]) => at("/users/test-only/alive", SignedInAdmin(test_only::alive))
            .part_of(TestEndpoints),
        ("POST", ["users", "test-only", "create"]) => at("/users/test-only/create", SignedInAdmin(test_only::create))
            .part_of(TestEndpoints),
        ("DELETE", ["users", "test-only", "delete-all"]) =>
            at("/users/test-only/delete-all", SignedInAdmin(test_only::delete_all)).part_of(TestEndpoints),
        ("GET", ["users", "test-only", "count"]) => at("/users/test-only/count", SignedInAdmin(test_only::count))
            .part_of(TestEndpoints),
        ("GET", ["users"]) => at("/users", SignedInAdmin(users::list)),
        ("POST", ["users"]) => at("/users", SignedInAdmin(users::create)),
        ("GET", ["users", id]) if is_id(id) => at("/users/{user_id}", SignedInAdmin(users::show)),
        ("PUT", ["users", id]) if is_id(id) => at("/users/{user_id}", SignedInAdmin(users::update)),
        ("DELETE", ["users", id]) if is_id(id) => at("/users/{user_id}", SignedInAdmin(users::delete)),
        ("GET", ["users", id, "sessions"]) if is_id(id) =>
            at("/users/{user_id}/sessions", Admin(sessions::list_of_user)),
        ("DELETE", ["users", id, "sessions"]) if is_id(id) =>
            at("/users/{user_id}/sessions", Admin(sessions::end_all_of_user)),
        ("GET", ["users", id, "tokens"]) if is_id(id) =>
            at("/users/{user_id}/tokens", Admin(personal_tokens::list_of_user)),
        ("DELETE", ["users", id, "tokens"]) if is_id(id) =>
            at("/users/{user_id}/tokens", Admin(personal_tokens::delete_all_of_user)),
        ("DELETE", ["users", id, "second-factor"]) if is_id(id) =>
            at("/users/{user_id}/second-factor", Admin(second_factor::reset)),
        ("GET", ["admin", "users"]) => at("/admin/users", SignedInAdmin(admin::list)),
        ("PUT", ["admin", "users", _]) => at("/admin/users/{user_id}", SignedInAdmin(users::update)),
        ("GET", ["admin", "audit"]) => at("/admin/audit", SignedInAdmin(admin::list_audit)),
        ("GET", ["admin", "audit", "export"]) => at("/admin/audit/export", SignedInAdmin(admin::export_audit)),
        ("GET", ["admin", "stats"]) => at("/admin/stats", SignedInAdmin(admin::stats)),
        ("GET", ["admin", "stats", "daily"]) => at("/admin/stats/daily", SignedInAdmin(admin::daily_stats)),
        ("GET", ["uploads"]) => at("/uploads", SignedIn(uploads::list)),
        ("POST", ["uploads"]) => at("/uploads", SignedIn(uploads::create)).limit(Upload),
        ("POST", ["uploads", "restore"]) => at("/uploads/restore", SignedIn(uploads::restore_since)),
        // The word is no id.
        (_, ["uploads", "restore", ..]) => return None,
        ("GET", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(uploads::show)),
        ("PUT", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(uploads::update)),
        ("DELETE", ["uploads", _]) => at("/uploads/{file_id}", SignedIn(uploads::delete)),
        ("POST", ["uploads", _, "restore"]) => at("/uploads/{file_id}/restore", SignedIn(uploads::restore)),
        ("GET", ["uploads", _, "download"]) => at("/uploads/{file_id}/download", SignedIn(uploads::download)),
        ("GET", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(links::list)),
        ("POST", ["uploads", _, "links"]) => at("/uploads/{file_id}/links", SignedIn(links::create)),
        ("DELETE", ["uploads", _, "links", _]) => at("/uploads/{file_id}/links/{link_id}", SignedIn(links::delete)),
        ("GET", ["changes"]) => at("/changes", SignedIn(changes::list)),
        ("GET", ["links", _]) => at("/links/{token}", Anyone(links::download)).limit(Links).without_key(),
        _ => return None,
    };
    Some(endpoint)
}

/// The console, the pages that show the OpenAPI document, and the files that they load. The document does not describe
/// them.
fn pages(method: &str, segments: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, segments) {
        ("GET", [""]) => at("/", Anyone(page)).part_of(Start),
        ("GET", ["console", ..]) => at("/console", Anyone(page)).part_of(Console),
        ("GET", ["docs"] | ["docs", "start.js" | "style.css" | "swagger-ui.js" | "swagger-ui.css" | "licenses.txt"]) =>
            at("/docs", Anyone(page)).part_of(Docs),
        ("GET", ["redoc"] | ["redoc", "redoc.js"]) => at("/redoc", Anyone(page)).part_of(Docs),
        _ => return None,
    };
    Some(endpoint.unlimited().without_key())
}

/// Any of the pages, by its path.
fn page(context: &mut RequestContext) -> Outcome {
    let page = context.app.pages().respond(&context.request);
    page.ok_or_else(|| context.app.route_not_found())
}

/// Whether a segment after `/users` may be the id of a user. It may not if it begins another path.
fn is_id(segment: &str) -> bool {
    let literals = ["me", "change-password", "export", "exports", "test-only"];
    !literals.contains(&segment) && !segment.starts_with("export-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_probes_and_pages_are_unlimited_and_only_they_and_links_need_no_api_key() {
        let table = include_str!("router.rs").split("#[cfg(test)]").next().unwrap_or_default();
        let templates = table.split("at(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut found = Vec::new();
        for template in templates.collect::<BTreeSet<_>>() {
            for path in [template.to_owned(), format!("/api/v1{template}")] {
                let segments: Vec<&str> = path.split('/').skip(1).collect();
                let of_path = METHODS.iter().filter_map(|method| endpoint(method, &segments));
                // A literal may stand in the place of an id.
                found.extend(of_path.filter(|line| line.name.to_string().ends_with(&path)));
            }
        }
        assert_eq!(found.len(), table.matches("at(\"").count(), "every line is found once");
        let names = |is_wanted: fn(&Endpoint) -> bool| -> BTreeSet<String> {
            found.iter().filter(|line| is_wanted(line)).map(|line| line.name.to_string()).collect()
        };
        let unlimited = [
            "/",
            "/console",
            "/docs",
            "/healthz",
            "/metrics",
            "/openapi.json",
            "/readyz",
            "/redoc",
        ];
        let mut expected: BTreeSet<String> =
            unlimited.iter().map(|path| format!("GET {path}")).collect();
        assert_eq!(names(|line| line.limit.is_none()), expected);
        expected.insert("GET /api/v1/links/{token}".to_owned());
        assert_eq!(names(|line| !line.needs_api_key), expected);
    }

    fn outcome(method: &str, path: &str) -> Result<(), String> {
        match find(&Config::of_test_database(), true, method, path) {
            Ok(_) => Ok(()),
            Err(Error::MethodNotAllowed(methods)) => Err(methods),
            Err(Error::FeatureOff) => Err("off".into()),
            Err(_) => Err("404".into()),
        }
    }

    #[test]
    fn names_of_endpoints_contain_no_ids() {
        let config = Config::of_test_database();
        for (method, path, expected) in [
            ("HEAD", "/api/v1/users/me", "GET /api/v1/users/me"),
            ("GET", "/api/v1/users/7", "GET /api/v1/users/{user_id}"),
            ("PUT", "/api/v1/admin/users/users/", "PUT /api/v1/admin/users/{user_id}"),
            ("GET", "/api/v1/uploads/me/download", "GET /api/v1/uploads/{file_id}/download"),
            ("GET", "/api/v1/links/s3cret/", "GET /api/v1/links/{token}"),
            (
                "DELETE",
                "/api/v1/uploads/7/links/8",
                "DELETE /api/v1/uploads/{file_id}/links/{link_id}",
            ),
            ("GET", "/readyz/", "GET /readyz"),
            ("GET", "/console/files/7", "GET /console"),
        ] {
            let endpoint = find(&config, true, method, path).unwrap_or_else(|_| panic!("{path}"));
            assert_eq!(endpoint.name.to_string(), expected);
        }
    }

    #[test]
    fn an_id_has_the_name_that_the_template_gives_it() {
        let found = find(&Config::of_test_database(), true, "GET", "/api/v1/uploads/7/download");
        let endpoint = found.unwrap_or_else(|_| panic!("no endpoint"));
        let [id] = &endpoint.path_params[..] else { panic!("an id") };
        assert_eq!((id.name, &*id.text), ("file_id", "7"));
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
            ("GET", "/console/", Ok(())),
            ("GET", "/console/users/7", Ok(())),
            ("GET", "/consoles", Err("404")),
            ("PUT", "/console/users/7", Err("GET, HEAD")),
            ("POST", "/redoc", Err("GET, HEAD")),
            ("GET", "*", Err("404")),
            ("PATCH", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/auth/login", Err("POST")),
            ("get", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("DELETE", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/users/change-password", Err("POST")),
            ("DELETE", "/api/v1/users/export", Err("GET, HEAD")),
            ("GET", "/api/v1/uploads/restore", Err("POST")),
            ("GET", "/api/v1/uploads/restore/download", Err("404")),
            ("GET", "/api/v1/users/exports", Err("404")),
            ("GET", "/api/v1/users/me/sessions", Err("404")),
            ("GET", "/api/v1/users/no-id/sessions", Ok(())),
            ("POST", "/api/v1/users/no-id/tokens", Err("GET, HEAD, DELETE")),
            ("DELETE", "/api/v1/users/test-only", Err("404")),
            ("DELETE", "/api/v1/users/test-only/delete-all", Err("off")),
            ("GET", "/api/v1/users/test-only/delete-all", Err("off")),
            ("GET", "/api/v1/users/no-id", Ok(())),
            ("POST", "/api/v1/users/no-id", Err("GET, HEAD, PUT, DELETE")),
        ] {
            assert_eq!(outcome(method, path), expected.map_err(str::to_owned), "{method} {path}");
        }
    }
}
