//! The table of contents: every path with its methods, the handler of each, who may enter, and the limit that
//! it counts against. `Allow`, 405, `HEAD` and the names of endpoints in the metrics all come from this table.

use std::borrow::Cow;

use uuid::Uuid;

use super::context::{Admin, CurrentUser, RequestContext};
use super::handlers::{admin, auth, exports, health, me, metrics, test_only, uploads, users};
use super::middleware::rate_limit::Limit;
use crate::config::{Config, Smtp};
use crate::error::{Error, FieldError, Place};
use crate::http::response::Response;
use crate::model::rules;
use crate::telemetry::metrics::EndpointName;

type Outcome = Result<Response, Error>;

/// What answers a request, and with that who may enter: a handler that needs a user or an administrator takes a
/// proof of it, which only authentication can give.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Anyone.
    Public(fn(&mut RequestContext) -> Outcome),
    /// A signed-in user.
    User(fn(&mut RequestContext, &CurrentUser) -> Outcome),
    /// A signed-in user; the handler is given the id in the path.
    UserAt(fn(&mut RequestContext, &CurrentUser, Uuid) -> Outcome),
    /// An administrator.
    Admin(fn(&mut RequestContext, &Admin) -> Outcome),
    /// An administrator; the handler is given the id in the path.
    AdminAt(fn(&mut RequestContext, &Admin, Uuid) -> Outcome),
    /// Whoever may export by the settings.
    Export(fn(&mut RequestContext) -> Outcome),
}

/// One method of a path.
pub struct Endpoint {
    method: &'static str,
    pub handler: Handler,
    /// `None`: requests are not counted, and need no API key either.
    pub limit: Option<Limit>,
}

/// One path.
pub struct Route {
    prefix: &'static str,
    /// The path after the prefix, with the name of the id in braces.
    template: &'static str,
    endpoints: &'static [Endpoint],
    /// The text in place of the id; empty where the path has none.
    id: String,
    /// Whether the settings offer this path.
    pub is_on: fn(&Config) -> bool,
}

/// The route of a path. The path is split first and decoded then, so that an encoded slash stays inside its
/// segment. One trailing slash is the same as none.
pub fn find(path: &str) -> Option<Route> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let decode = |segment| percent_encoding::percent_decode_str(segment).decode_utf8().ok();
    let segments: Vec<Cow<str>> = path.split('/').map(decode).collect::<Option<_>>()?;
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    match segments.as_slice() {
        ["api", "v1", rest @ ..] => api_v1(rest).map(|route| Route { prefix: "/api/v1", ..route }),
        ["healthz"] => Some(route("/healthz", const { &[get(public(health::alive))] })),
        ["readyz"] => Some(route("/readyz", const { &[get(public(health::ready))] })),
        ["metrics"] => Some(route("/metrics", const { &[get(public(metrics::show))] })),
        _ => None,
    }
}

/// Literal segments stand before ids, so that a word of the API is never taken for an id.
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
            post(public(auth::refresh)).limit(Limit::Auth("refresh")),
        ] }),
        ["auth", "logout"] => route("/auth/logout", const { &[post(user(auth::logout))] }),
        ["auth", "request-password-reset"] => route("/auth/request-password-reset", const { &[
            post(public(auth::request_password_reset)).limit(Limit::Auth("request-password-reset")),
        ] }).only_if(offers_resets),
        ["auth", "reset-password"] => route("/auth/reset-password", const { &[
            post(public(auth::reset_password)).limit(Limit::Auth("reset-password")),
        ] }).only_if(offers_resets),
        ["auth", "me"] => route("/auth/me", const { &[get(user(me::show))] }),

        ["users", "me"] => route("/users/me", const { &[get(user(me::show)), put(user(me::update))] }),
        ["users", "change-password"] => route("/users/change-password", const { &[
            post(user(me::change_password)),
        ] }),
        ["users", "export"] => route("/users/export", const { &[get(export(exports::filtered))] }),
        ["users", "exports", "csv"] => route("/users/exports/csv", const { &[get(export(exports::filtered))] }),
        ["users", "export-full"] => route("/users/export-full", const { &[get(export(exports::full))] }),
        ["users", "export-alive"] => route("/users/export-alive", const { &[get(export(exports::alive))] }),
        ["users", "export-simple"] => route("/users/export-simple", const { &[get(export(exports::simple))] }),
        ["users", "test-only", rest] => test_endpoints(rest)?.only_if(|config| config.test_endpoints_enabled),
        // Only beginnings of the paths above.
        ["users", "exports" | "test-only"] => return None,
        ["users"] => route("/users", const { &[get(admin(users::list)), post(admin(users::create))] }),
        ["users", id] => route("/users/{user_id}", const { &[
            get(admin_at(users::show)), put(admin_at(users::update)), delete(admin_at(users::delete)),
        ] }).id(id),
        ["admin", "users"] => route("/admin/users", const { &[get(admin(admin::list))] }),
        ["admin", "users", id] => route("/admin/users/{user_id}", const { &[put(admin_at(users::update))] }).id(id),
        ["admin", "stats"] => route("/admin/stats", const { &[get(admin(admin::stats))] }),

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

fn offers_resets(config: &Config) -> bool {
    !matches!(config.smtp, Smtp::Off)
}

/// `endpoints` stand in the order of `Allow`.
fn route(template: &'static str, endpoints: &'static [Endpoint]) -> Route {
    Route { prefix: "", template, endpoints, id: String::new(), is_on: |_| true }
}

impl Route {
    fn id(self, text: &str) -> Route {
        Route { id: text.to_owned(), ..self }
    }

    fn only_if(self, is_on: fn(&Config) -> bool) -> Route {
        Route { is_on, ..self }
    }

    /// The endpoint of a method. `HEAD` is answered wherever `GET` is.
    pub fn endpoint(&self, method: &str) -> Option<&'static Endpoint> {
        let method = if method == "HEAD" { "GET" } else { method };
        self.endpoints.iter().find(|endpoint| endpoint.method == method)
    }

    /// The value of `Allow`.
    pub fn methods(&self) -> String {
        let names = self.endpoints.iter().flat_map(|endpoint| match endpoint.method {
            "GET" => ["GET", "HEAD"].as_slice(),
            _ => std::slice::from_ref(&endpoint.method),
        });
        names.copied().collect::<Vec<_>>().join(", ")
    }

    /// The name of one of the route's endpoints in the metrics: there are no more names than endpoints.
    pub fn name(&self, endpoint: &Endpoint) -> EndpointName {
        EndpointName { method: endpoint.method, prefix: self.prefix, template: self.template }
    }

    /// The id in the path. Clients read its name, as the template has it, where it is no UUID.
    pub fn parse_id(&self) -> Result<Uuid, Error> {
        let name = self.template.split(['{', '}']).nth(1);
        let fault = |problem| FieldError { place: Place::Path, field: name, problem };
        rules::uuid(&self.id).map_err(|problem| Error::Invalid(vec![fault(problem)]))
    }
}

const fn endpoint(method: &'static str, handler: Handler) -> Endpoint {
    let limit = match handler {
        Handler::Public(_) => None,
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
    fn names_of_endpoints_hold_no_ids() {
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
    fn an_id_that_is_no_uuid_is_told_by_its_name() {
        let outcome = find("/api/v1/uploads/7/download").expect("a route").parse_id();
        let Err(Error::Invalid(faults)) = outcome else {
            panic!("not refused");
        };
        assert_eq!((faults[0].place, faults[0].field), (Place::Path, Some("file_id")));
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
            ("GET", "/api/v1/users/m%ff", Err("404")),
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
