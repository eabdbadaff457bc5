//! The table of endpoints: every path with its methods and, for each of them, the handler, who may use it, and the rate
//! limit it counts against. `Allow`, 405, `HEAD` and the names of endpoints in the metrics all follow from this table.

use std::borrow::Cow;

use uuid::Uuid;

use super::context::{Admin, CurrentUser, RefreshToken, RequestContext};
use super::handlers::{
    admin, audit, auth, exports, health, me, metrics, test_only, uploads, users,
};
use super::middleware::rate_limit::Limit;
use crate::config::{Config, Smtp};
use crate::error::{Error, FieldError, FieldLocation};
use crate::http::response::Response;
use crate::model::rules;
use crate::telemetry::metrics::EndpointName;

type Outcome = Result<Response, Error>;

/// The function that answers requests to an endpoint. Its variant says who may use the endpoint. A handler for users or
/// administrators takes a proof that only authentication can make, so mounting it for others does not compile.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Anyone.
    Public(fn(&mut RequestContext) -> Outcome),
    /// The bearer of a refresh token. The token is verified before the rate limit is applied, because requests count
    /// against the limit of the token's session.
    Refresh(fn(&mut RequestContext, RefreshToken) -> Outcome),
    /// A signed-in user.
    User(fn(&mut RequestContext, &CurrentUser) -> Outcome),
    /// A signed-in user; the handler is given the id in the path.
    UserAt(fn(&mut RequestContext, &CurrentUser, Uuid) -> Outcome),
    /// An administrator.
    Admin(fn(&mut RequestContext, &Admin) -> Outcome),
    /// An administrator; the handler is given the id in the path.
    AdminAt(fn(&mut RequestContext, &Admin, Uuid) -> Outcome),
    /// Whoever may export according to the settings.
    Export(fn(&mut RequestContext) -> Outcome),
}

/// One method of a path.
pub struct Endpoint {
    method: &'static str,
    pub handler: Handler,
    /// The rate limit. If `None`, requests are not limited and need no API key either.
    pub limit: Option<Limit>,
}

/// One path, matched by a request.
pub struct Route {
    /// The beginning of the path, such as `/api/v1`.
    prefix: &'static str,
    /// The rest of the path, with `{name}` in place of the id.
    template: &'static str,
    endpoints: &'static [Endpoint],
    /// The text that stands in place of the id in the request. Empty if the path has no id.
    id: String,
    /// Whether the settings enable this path.
    pub is_enabled: fn(&Config) -> bool,
}

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
        ["api", "v1", rest @ ..] => api_v1(rest).map(|route| Route { prefix: "/api/v1", ..route }),
        ["healthz"] => Some(route("/healthz", const { &[get(public(health::alive))] })),
        ["readyz"] => Some(route("/readyz", const { &[get(public(health::ready))] })),
        ["metrics"] => Some(route("/metrics", const { &[get(public(metrics::show))] })),
        _ => None,
    }
}

/// Whether a path is `/api/v1` or below it, also if no route has it.
pub fn is_api(path: &str) -> bool {
    let mut segments = path.split('/').map(percent_encoding::percent_decode_str);
    ["", "api", "v1"].iter().all(|name| segments.next().is_some_and(|s| s.eq(name.bytes())))
}

/// The routes below `/api/v1`. Literal segments stand before ids, so that a literal is never taken for an id.
#[rustfmt::skip]
fn api_v1(segments: &[&str]) -> Option<Route> {
    Some(match segments {
        ["auth", "register"] => route("/auth/register", const { &[
            post(public(auth::register)).limit(Limit::Auth("register")),
        ] }),
        ["auth", "login"] => route("/auth/login", const { &[
            post(public(auth::login)).limit(Limit::Auth("login")),
        ] }),
        ["auth", "refresh"] => route("/auth/refresh", const { &[
            post(Handler::Refresh(auth::refresh)).limit(Limit::Auth("refresh")),
        ] }),
        ["auth", "logout"] => route("/auth/logout", const { &[post(user(auth::logout))] }),
        ["auth", "request-password-reset"] => route("/auth/request-password-reset", const { &[
            post(public(auth::request_password_reset)).limit(Limit::Auth("request-password-reset")),
        ] }).enabled_if(offers_password_resets),
        ["auth", "reset-password"] => route("/auth/reset-password", const { &[
            post(public(auth::reset_password)).limit(Limit::Auth("reset-password")),
        ] }).enabled_if(offers_password_resets),
        ["auth", "me"] => route("/auth/me", const { &[get(user(me::show))] }),

        ["users", "me"] => route("/users/me", const { &[get(user(me::show)), put(user(me::update))] }),
        ["users", "change-password"] => route("/users/change-password", const { &[
            post(user(me::change_password)).limit(Limit::Auth("change-password")),
        ] }),
        ["users", "export"] => route("/users/export", const { &[get(export(exports::filtered))] }),
        ["users", "exports", "csv"] => route("/users/exports/csv", const { &[get(export(exports::filtered))] }),
        ["users", "export-full"] => route("/users/export-full", const { &[get(export(exports::full))] }),
        ["users", "export-alive"] => route("/users/export-alive", const { &[get(export(exports::alive))] }),
        ["users", "export-simple"] => route("/users/export-simple", const { &[get(export(exports::simple))] }),
        ["users", "test-only", rest] => test_endpoints(rest)?.enabled_if(|config| config.test_endpoints_enabled),
        // These are only prefixes of the paths above, and not the ids of users either.
        ["users", "exports" | "test-only"] => return None,
        ["users"] => route("/users", const { &[get(admin(users::list)), post(admin(users::create))] }),
        ["users", id] => route("/users/{user_id}", const { &[
            get(admin_at(users::show)), put(admin_at(users::update)), delete(admin_at(users::delete)),
        ] }).id(id),
        ["admin", "users"] => route("/admin/users", const { &[get(admin(admin::list))] }),
        ["admin", "users", id] => route("/admin/users/{user_id}", const { &[put(admin_at(users::update))] }).id(id),
        ["admin", "stats"] => route("/admin/stats", const { &[get(admin(admin::stats))] }),
        ["admin", "audit"] => route("/admin/audit", const { &[get(admin(audit::list))] }),
        ["admin", "audit", "export"] => route("/admin/audit/export", const { &[get(admin(audit::export))] }),

        ["uploads"] => route("/uploads", const { &[
            get(user(uploads::list)), post(user(uploads::create)).limit(Limit::Upload),
        ] }),
        ["uploads", id] => route("/uploads/{file_id}", const { &[
            get(user_at(uploads::show)), put(user_at(uploads::update)), delete(user_at(uploads::delete)),
        ] }).id(id),
        ["uploads", id, "download"] => route("/uploads/{file_id}/download", const { &[
            get(user_at(uploads::download)),
        ] }).id(id),
        _ => return None,
    })
}

#[rustfmt::skip]
fn test_endpoints(segment: &str) -> Option<Route> {
    Some(match segment {
        "alive" => route("/users/test-only/alive", const { &[get(admin(test_only::alive))] }),
        "create" => route("/users/test-only/create", const { &[post(admin(test_only::create))] }),
        "delete-all" => route("/users/test-only/delete-all", const { &[delete(admin(test_only::delete_all))] }),
        "count" => route("/users/test-only/count", const { &[get(admin(test_only::count))] }),
        _ => return None,
    })
}

fn offers_password_resets(config: &Config) -> bool {
    !matches!(config.smtp, Smtp::Off)
}

/// A route without an id that is always enabled. `endpoints` are listed in the order in which `Allow` lists them.
fn route(template: &'static str, endpoints: &'static [Endpoint]) -> Route {
    Route { prefix: "", template, endpoints, id: String::new(), is_enabled: |_| true }
}

impl Route {
    fn id(self, text: &str) -> Route {
        Route { id: text.to_owned(), ..self }
    }

    fn enabled_if(self, is_enabled: fn(&Config) -> bool) -> Route {
        Route { is_enabled, ..self }
    }

    /// The endpoint for a method. `HEAD` is answered by the endpoint for `GET`.
    pub fn endpoint(&self, method: &str) -> Option<&'static Endpoint> {
        let method = if method == "HEAD" { "GET" } else { method };
        self.endpoints.iter().find(|endpoint| endpoint.method == method)
    }

    /// The methods of all endpoints, as the value of `Allow`.
    pub fn methods(&self) -> String {
        let names = self.endpoints.iter().flat_map(|endpoint| match endpoint.method {
            "GET" => ["GET", "HEAD"].as_slice(),
            _ => std::slice::from_ref(&endpoint.method),
        });
        names.copied().collect::<Vec<_>>().join(", ")
    }

    /// The name that one of the route's endpoints has in the metrics.
    pub fn name(&self, endpoint: &Endpoint) -> EndpointName {
        EndpointName { method: endpoint.method, prefix: self.prefix, template: self.template }
    }

    /// Parses the id in the path. If it is not a UUID, the error carries the name that the template has for it.
    pub fn parse_id(&self) -> Result<Uuid, Error> {
        let name = self.template.split(['{', '}']).nth(1);
        let error = |problem| FieldError { location: FieldLocation::Path, field: name, problem };
        rules::uuid(&self.id).map_err(|problem| Error::Invalid(vec![error(problem)]))
    }
}

/// An endpoint with the rate limit that is usual for its kind of handler.
const fn endpoint(method: &'static str, handler: Handler) -> Endpoint {
    let limit = match handler {
        Handler::Public(_) | Handler::Refresh(_) => None,
        Handler::User(_) | Handler::UserAt(_) | Handler::Export(_) => Some(Limit::General),
        Handler::Admin(_) | Handler::AdminAt(_) => Some(Limit::Admin),
    };
    Endpoint { method, handler, limit }
}

impl Endpoint {
    const fn limit(self, limit: Limit) -> Endpoint {
        Endpoint { limit: Some(limit), ..self }
    }
}

const fn get(handler: Handler) -> Endpoint {
    endpoint("GET", handler)
}

const fn post(handler: Handler) -> Endpoint {
    endpoint("POST", handler)
}

const fn put(handler: Handler) -> Endpoint {
    endpoint("PUT", handler)
}

const fn delete(handler: Handler) -> Endpoint {
    endpoint("DELETE", handler)
}

const fn public(handler: fn(&mut RequestContext) -> Outcome) -> Handler {
    Handler::Public(handler)
}

const fn user(handler: fn(&mut RequestContext, &CurrentUser) -> Outcome) -> Handler {
    Handler::User(handler)
}

const fn user_at(handler: fn(&mut RequestContext, &CurrentUser, Uuid) -> Outcome) -> Handler {
    Handler::UserAt(handler)
}

const fn admin(handler: fn(&mut RequestContext, &Admin) -> Outcome) -> Handler {
    Handler::Admin(handler)
}

const fn admin_at(handler: fn(&mut RequestContext, &Admin, Uuid) -> Outcome) -> Handler {
    Handler::AdminAt(handler)
}

const fn export(handler: fn(&mut RequestContext) -> Outcome) -> Handler {
    Handler::Export(handler)
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

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
            ("GET", "/", Err("404")),
            ("GET", "*", Err("404")),
            ("PATCH", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/auth/login", Err("POST")),
            ("get", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("DELETE", "/api/v1/users/me", Err("GET, HEAD, PUT")),
            ("GET", "/api/v1/users/change-password", Err("POST")),
            ("DELETE", "/api/v1/users/export", Err("GET, HEAD")),
            ("GET", "/api/v1/users/exports", Err("404")),
            ("DELETE", "/api/v1/users/test-only", Err("404")),
            ("GET", "/api/v1/users/test-only/delete-all", Err("DELETE")),
            ("GET", "/api/v1/users/no-id", Ok(())),
            ("POST", "/api/v1/users/no-id", Err("GET, HEAD, PUT, DELETE")),
        ] {
            assert_eq!(outcome(method, path), expected.map_err(str::to_owned), "{method} {path}");
        }
    }
}
