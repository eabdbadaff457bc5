//! One request from head to answer: the chain, in reading order.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::api::context::{App, RequestContext};
use crate::api::middleware::authenticate::{CurrentUser, authenticate};
use crate::api::middleware::rate_limit::{Class, by_address, by_user, enforce};
use crate::api::middleware::{access_log, api_key, cors, rate_limit, request_id};
use crate::api::router::{Handler, route};
use crate::auth::token_bucket::Decision;
use crate::error::Error;
use crate::http::body::Body;
use crate::http::client_address::{client_address, is_trusted};
use crate::http::request::Request;
use crate::http::response::{self, Response};
use crate::model::timestamp::Timestamp;

/// What the chain found out on its way, for headers and the log, whether it got through or not.
#[derive(Default)]
struct Trace {
    endpoint: Option<String>,
    user: Option<Uuid>,
    limit: Option<Decision>,
}

/// Answers one request. Never panics, whatever a handler does.
pub fn answer(app: &App, head: &rouille::Request, body: Body) -> rouille::Response {
    let began = Instant::now();
    let _running = app.metrics.running();
    let request = Request::new(head, body);
    let id = request_id::request_id(request.header("X-Request-ID"));
    let client = client(app, &request);
    let context = RequestContext { app, request, id, client };
    let mut trace = Trace::default();
    let outcome = guarded(|| chain(&context, &mut trace));
    let mut response = outcome.and_then(sendable).unwrap_or_else(|error| failed(&context, &error));
    add_headers(&context, &trace, &mut response);
    let (status, took) = (response.status_code, began.elapsed());
    app.metrics.answered(trace.endpoint, status, took);
    access_log::write(&access_log::Line {
        id,
        method: context.request.method(),
        path: context.request.path(),
        status,
        took,
        user: trace.user,
        client,
    });
    response
}

/// The servers below would send a broken header, or leave it out without a word.
fn sendable(response: Response) -> Result<Response, Error> {
    if response::is_sendable(&response) {
        Ok(response)
    } else {
        let cause = format!("a control character in a header of {response:?}");
        Err(Error::Internal(cause))
    }
}

fn failed(context: &RequestContext, error: &Error) -> Response {
    if let Error::Internal(cause) = error {
        log::error!("request {}: {cause}", context.id);
    }
    let now = Timestamp(OffsetDateTime::now_utc());
    response::error(error, context.app.config.error_format, now)
}

/// Route, address limit, authentication, role, user limit, handler (contract, 3).
fn chain(context: &RequestContext, trace: &mut Trace) -> Result<Response, Error> {
    let (endpoint, name) = match route(context.request.method(), context.request.path()) {
        Err(Error::MethodNotAllowed(methods)) => {
            return cors::preflight(context, &methods).ok_or(Error::MethodNotAllowed(methods));
        }
        found => found?,
    };
    trace.endpoint = Some(name);
    if !(endpoint.is_on)(&context.app.config) {
        return Err(Error::FeatureOff);
    }
    match endpoint.handler {
        Handler::Public(handler) => {
            if let Some(class) = endpoint.class {
                trace.limit = by_address(context, class);
                enforce(context, trace.limit, class)?;
                api_key::check(context)?;
            }
            handler(context)
        }
        Handler::User(handler) => {
            let user = admit(context, endpoint.class, trace, Ok)?;
            handler(context, &user)
        }
        Handler::UserAt(handler, id) => {
            let user = admit(context, endpoint.class, trace, Ok)?;
            let id = id.map_err(|fault| Error::Invalid(vec![fault]))?;
            handler(context, &user, id)
        }
        Handler::Admin(handler) => {
            let admin = admit(context, endpoint.class, trace, |user| user.admin())?;
            handler(context, &admin)
        }
        Handler::AdminAt(handler, id) => {
            let admin = admit(context, endpoint.class, trace, |user| user.admin())?;
            let id = id.map_err(|fault| Error::Invalid(vec![fault]))?;
            handler(context, &admin, id)
        }
        Handler::Export(handler) => {
            admit_to_export(context, trace)?;
            handler(context)
        }
    }
}

/// Authenticates, counts for the user, checks the API key, and lets `role` say whether it may be. A
/// wrong key is 429 where the bucket is empty, like a rejected token; a wrong role is always 403.
fn admit<T>(
    context: &RequestContext,
    class: Option<Class>,
    trace: &mut Trace,
    role: impl FnOnce(CurrentUser) -> Result<T, Error>,
) -> Result<T, Error> {
    let user = identify(context, trace)?;
    let class = class.unwrap_or(Class::General);
    trace.limit = by_user(context, class, &user);
    api_key::check(context)
        .or_else(|error| enforce(context, trace.limit, class).and(Err(error)))?;
    let admitted = role(user)?;
    enforce(context, trace.limit, class)?;
    Ok(admitted)
}

/// The one access check of all exports (spec.md, Authentication 7): token, key, role.
fn admit_to_export(context: &RequestContext, trace: &mut Trace) -> Result<(), Error> {
    let has_token = context.request.header("Authorization").is_some();
    if !has_token && api_key::may_export_anonymously(context) {
        trace.limit = by_address(context, Class::General);
        return enforce(context, trace.limit, Class::General);
    }
    let user = identify(context, trace)?;
    trace.limit = by_user(context, Class::General, &user);
    api_key::check_at_export(context)
        .or_else(|error| enforce(context, trace.limit, Class::General).and(Err(error)))?;
    if context.app.config.export_require_admin {
        user.admin()?;
    }
    enforce(context, trace.limit, Class::General)
}

/// Authenticates. What is rejected counts for the address.
fn identify(context: &RequestContext, trace: &mut Trace) -> Result<CurrentUser, Error> {
    match authenticate(context) {
        Ok(user) => {
            trace.user = Some(user.user().id);
            Ok(user)
        }
        // A database that is down is no fault of the client.
        Err(error) if error.parts().0 != 401 => Err(error),
        Err(error) => {
            trace.limit = by_address(context, Class::General);
            enforce(context, trace.limit, Class::General)?;
            Err(error)
        }
    }
}

/// Semaphore a panic into an error.
fn guarded(run: impl FnOnce() -> Result<Response, Error>) -> Result<Response, Error> {
    // What a panic could leave half done is dropped with the request: shared state is behind locks
    // that are never held while a handler runs.
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".into())))
}

fn client(app: &App, request: &Request) -> IpAddr {
    let trusted = &app.config.trusted_proxies;
    let peer = request.peer();
    let mut forwarded = request.headers("X-Forwarded-For").peekable();
    let strange = forwarded.peek().is_some() && !is_trusted(peer, trusted);
    if strange && !app.warned_of_forwarding.swap(true, Ordering::Relaxed) {
        log::warn!(
            "X-Forwarded-For from {peer}, which is not in CLOAKROOM_TRUSTED_PROXIES, is ignored (said once)"
        );
    }
    client_address(peer, request.headers("X-Forwarded-For"), trusted)
}

fn add_headers(context: &RequestContext, trace: &Trace, response: &mut Response) {
    let headers = &mut response.headers;
    headers.push(("X-Request-ID".into(), context.id.to_string().into()));
    headers.push(("X-Content-Type-Options".into(), "nosniff".into()));
    let cached = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Cache-Control"));
    if context.request.path().starts_with("/api/v1") && !cached {
        headers.push(("Cache-Control".into(), "no-store".into()));
    }
    if let Some(decision) = &trace.limit {
        rate_limit::add_headers(response, decision);
    }
    cors::add_headers(response, context.request.header("Origin"), &context.app.config.cors_origins);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let outcome = guarded(|| panic!("on purpose"));
        assert!(matches!(outcome, Err(Error::Internal(_))));
    }

    #[test]
    fn a_header_that_could_split_an_answer_is_an_internal_error() {
        for value in ["a\rb", "a\nb", "a\r\nSet-Cookie: b", "a\0b"] {
            let response = response::no_content().with_additional_header("X-Name", value);
            assert!(matches!(sendable(response), Err(Error::Internal(_))), "{value:?}");
        }
        let response = response::no_content().with_additional_header("X-Name", "a\tb \u{e9}");
        assert!(sendable(response).is_ok());
    }
}
