//! The table of contents: every endpoint, who may enter, and what it counts against.

use uuid::Uuid;

use crate::api::context::RequestContext;
use crate::api::handlers::{admin, auth, exports, health, me, metrics, test_only, uploads, users};
use crate::api::middleware::authenticate::{Admin, CurrentUser};
use crate::api::middleware::rate_limit::Class;
use crate::config::{Config, Smtp};
use crate::error::{Error, FieldError, Place};
use crate::http::response::Response;
use crate::model::rules;

type Answer = Result<Response, Error>;

/// Who may enter: the handler's signature says so, and asks for what only `authenticate` can give.
pub enum Handler {
    /// Anyone.
    Public(fn(&RequestContext) -> Answer),
    /// A signed-in user.
    User(fn(&RequestContext, &CurrentUser) -> Answer),
    /// A signed-in user, with the id of the path, which is looked at after authentication.
    UserAt(fn(&RequestContext, &CurrentUser, Uuid) -> Answer, Result<Uuid, FieldError>),
    /// A signed-in administrator.
    Admin(fn(&RequestContext, &Admin) -> Answer),
    /// A signed-in administrator, with the id of the path.
    AdminAt(fn(&RequestContext, &Admin, Uuid) -> Answer, Result<Uuid, FieldError>),
    /// Whom the one access check of exports admits.
    Export(fn(&RequestContext) -> Answer),
}

/// One endpoint.
pub struct Endpoint {
    /// What answers.
    pub handler: Handler,
    /// What it counts against; `None`: no limit.
    pub class: Option<Class>,
    /// Whether the settings offer it.
    pub is_on: fn(&Config) -> bool,
}

impl Endpoint {
    fn limited(handler: Handler, class: Class) -> Endpoint {
        Endpoint { handler, class: Some(class), is_on: |_| true }
    }

    fn only_if(self, is_on: fn(&Config) -> bool) -> Endpoint {
        Endpoint { is_on, ..self }
    }
}

/// What stands where an id of a user may stand, and is none.
const NO_IDS: [&str; 8] = [
    "me",
    "change-password",
    "export",
    "export-full",
    "export-alive",
    "export-simple",
    "exports",
    "test-only",
];

/// The endpoint of a method and a path, whose segments are percent-decoded.
fn find(method: &str, segments: &[&str]) -> Option<Endpoint> {
    Some(match segments {
        ["healthz"] if method == "GET" => unlimited(health::alive),
        ["readyz"] if method == "GET" => unlimited(health::ready),
        ["metrics"] if method == "GET" => unlimited(metrics::show),
        ["api", "v1", rest @ ..] => match (method, rest) {
            ("POST", ["auth", "register"]) => public(auth::register, Class::Auth("register")),
            ("POST", ["auth", "login"]) => public(auth::login, Class::Auth("login")),
            ("POST", ["auth", "refresh"]) => public(auth::refresh, Class::Auth("refresh")),
            ("POST", ["auth", "logout"]) => user(auth::logout),
            ("POST", ["auth", "request-password-reset"]) => {
                public(auth::request_password_reset, Class::Auth("request-password-reset"))
                    .only_if(offers_resets)
            }
            ("POST", ["auth", "reset-password"]) => {
                public(auth::reset_password, Class::Auth("reset-password")).only_if(offers_resets)
            }
            ("GET", ["auth", "me"]) => user(me::show),
            ("GET", ["users", "me"]) => user(me::show),
            ("PUT", ["users", "me"]) => user(me::update),
            ("POST", ["users", "change-password"]) => user(me::change_password),
            ("POST", ["uploads"]) => {
                Endpoint { class: Some(Class::Upload), ..user(uploads::create) }
            }
            ("GET", ["uploads"]) => user(uploads::list),
            ("GET", ["uploads", id]) => user_at(uploads::show, "file_id", id),
            ("PUT", ["uploads", id]) => user_at(uploads::update, "file_id", id),
            ("DELETE", ["uploads", id]) => user_at(uploads::delete, "file_id", id),
            ("GET", ["uploads", id, "download"]) => user_at(uploads::download, "file_id", id),
            ("GET", ["users", "export"]) => export(exports::filtered),
            ("GET", ["users", "exports", "csv"]) => export(exports::filtered),
            ("GET", ["users", "export-full"]) => export(exports::full),
            ("GET", ["users", "export-alive"]) => export(exports::alive),
            ("GET", ["users", "export-simple"]) => export(exports::simple),
            (_, ["users", "test-only", rest]) => match (method, *rest) {
                ("GET", "alive") => admin(test_only::alive),
                ("POST", "create") => admin(test_only::create),
                ("DELETE", "delete-all") => admin(test_only::delete_all),
                ("GET", "count") => admin(test_only::count),
                _ => return None,
            }
            .only_if(|config| config.test_endpoints_enabled),
            ("POST", ["users"]) => admin(users::create),
            ("GET", ["users"]) => admin(users::list),
            (_, ["users", id]) if NO_IDS.contains(id) => return None,
            ("GET", ["users", id]) => admin_at(users::show, "user_id", id),
            ("PUT", ["users", id]) => admin_at(users::update, "user_id", id),
            ("DELETE", ["users", id]) => admin_at(users::delete, "user_id", id),
            ("GET", ["admin", "users"]) => admin(admin::list),
            ("PUT", ["admin", "users", id]) => admin_at(users::update, "user_id", id),
            ("GET", ["admin", "stats"]) => admin(admin::stats),
            _ => return None,
        },
        _ => return None,
    })
}

fn unlimited(handler: fn(&RequestContext) -> Answer) -> Endpoint {
    Endpoint { handler: Handler::Public(handler), class: None, is_on: |_| true }
}

fn public(handler: fn(&RequestContext) -> Answer, class: Class) -> Endpoint {
    Endpoint::limited(Handler::Public(handler), class)
}

fn user(handler: fn(&RequestContext, &CurrentUser) -> Answer) -> Endpoint {
    Endpoint::limited(Handler::User(handler), Class::General)
}

fn user_at(
    handler: fn(&RequestContext, &CurrentUser, Uuid) -> Answer,
    name: &'static str,
    id: &str,
) -> Endpoint {
    Endpoint::limited(Handler::UserAt(handler, path_id(name, id)), Class::General)
}

fn admin(handler: fn(&RequestContext, &Admin) -> Answer) -> Endpoint {
    Endpoint::limited(Handler::Admin(handler), Class::Admin)
}

fn admin_at(
    handler: fn(&RequestContext, &Admin, Uuid) -> Answer,
    name: &'static str,
    id: &str,
) -> Endpoint {
    Endpoint::limited(Handler::AdminAt(handler, path_id(name, id)), Class::Admin)
}

fn export(handler: fn(&RequestContext) -> Answer) -> Endpoint {
    Endpoint::limited(Handler::Export(handler), Class::General)
}

fn offers_resets(config: &Config) -> bool {
    !matches!(config.smtp, Smtp::Off)
}

/// The id of a path; `name` is what clients see where it is none.
fn path_id(name: &'static str, text: &str) -> Result<Uuid, FieldError> {
    rules::uuid(text).map_err(|problem| FieldError {
        place: Place::Path,
        field: Some(name),
        problem,
    })
}

/// Methods that endpoints use, in the order of `Allow`. `HEAD` is answered where `GET` is.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The endpoint of a request and its name. Fails with 404, or with 405 and the path's methods.
pub fn route(method: &str, path: &str) -> Result<(Endpoint, String), Error> {
    let segments = decode(path).ok_or(Error::RouteNotFound)?;
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let method = if method == "HEAD" { "GET" } else { method };
    match find(method, &segments) {
        Some(endpoint) => {
            let name = name(method, &segments, &endpoint.handler);
            Ok((endpoint, name))
        }
        None => Err(match methods_of(&segments) {
            methods if methods.is_empty() => Error::RouteNotFound,
            methods => Error::MethodNotAllowed(methods),
        }),
    }
}

/// Method and path with `{id}` in place of the id, which stands after the name of its kind. So there
/// are no more names than endpoints.
fn name(method: &str, segments: &[&str], handler: &Handler) -> String {
    let mut has_id = matches!(handler, Handler::UserAt(..) | Handler::AdminAt(..));
    let mut name = format!("{method} ");
    let mut previous = "";
    for segment in segments {
        let is_id = has_id && ["users", "uploads"].contains(&previous);
        name.push('/');
        name.push_str(if is_id { "{id}" } else { segment });
        has_id &= !is_id;
        previous = segment;
    }
    name
}

fn methods_of(segments: &[&str]) -> String {
    let mut methods: Vec<&str> =
        METHODS.into_iter().filter(|m| find(m, segments).is_some()).collect();
    if methods.first() == Some(&"GET") {
        methods.insert(1, "HEAD");
    }
    methods.join(", ")
}

/// Splits first and decodes then, so that an encoded slash stays inside its segment. One trailing
/// slash is the same as none.
fn decode(path: &str) -> Option<Vec<std::borrow::Cow<'_, str>>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/')
        .map(|segment| percent_encoding::percent_decode_str(segment).decode_utf8().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(method: &str, path: &str) -> Result<(), String> {
        match route(method, path) {
            Ok(_) => Ok(()),
            Err(Error::MethodNotAllowed(methods)) => Err(methods),
            Err(_) => Err("404".into()),
        }
    }

    #[test]
    fn names_of_endpoints_hold_no_ids() {
        for (method, path, expected) in [
            ("HEAD", "/api/v1/users/me", "GET /api/v1/users/me"),
            ("GET", "/api/v1/users/7", "GET /api/v1/users/{id}"),
            ("PUT", "/api/v1/admin/users/users/", "PUT /api/v1/admin/users/{id}"),
            ("GET", "/api/v1/uploads/uploads/download", "GET /api/v1/uploads/{id}/download"),
            ("GET", "/api/v1/users/test-only/count", "GET /api/v1/users/test-only/count"),
        ] {
            let found = route(method, path).map(|(_, name)| name);
            assert_eq!(found.ok().as_deref(), Some(expected));
        }
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
