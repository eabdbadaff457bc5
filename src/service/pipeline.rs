//! One request from its head to its response: all steps, in order.

use std::borrow::Cow;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use log::Level;

use super::access_log::{loggable_method, loggable_path};
use super::router;
use super::{api_key, cors};
use crate::body_memory::{Owner, SMALL_BODY};
use crate::error::Error;
use crate::http::body::Body;
use crate::http::client_address::{client_address, is_trusted_proxy, network};
use crate::http::error_response::{error_response, grant_error_response};
use crate::http::request::{Request, request_id};
use crate::http::response::{Response, ResponseBody, check_headers};
use crate::model::audit::RefusedAction;
use crate::model::timestamp::Timestamp;
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::request::endpoint::{Endpoint, Handler};
use crate::request::identity::{self, Exporters, RefreshToken, SignedIn};
use crate::request::limits::{self, Caller, Limit};
use crate::request::view_token;
use crate::telemetry::access_log::{self, AccessLogEntry};
use crate::telemetry::metrics::EndpointName;

/// Answers one request. Does not panic, even if a handler does.
pub fn answer(app: &Arc<App>, head: &rouille::Request, body: Body) -> Response {
    let began = Instant::now();
    let _running = app.metrics.request_running();
    let request = Request::new(head, body);
    let id = request_id(request.header("X-Request-ID"));
    let client = find_client(app, &request);
    if let Some(room) = &request.body.room {
        room.count_for(Owner::Network(network(client)));
    }
    let mut context = RequestContext {
        app,
        db: app.db.for_request(client, id),
        request,
        id,
        client,
        endpoint: None,
        is_for_browsers: false,
        needs_admin: false,
        path_params: Vec::new(),
        authenticated: None,
        account_in_log: None,
        audited: None,
        limit: None,
        taken: None,
    };
    let outcome = catch_panic(|| respond(&mut context)).and_then(check_headers);
    let outcome = outcome.and_then(|response| keep_room(&context, response));
    let outcome = outcome.map_err(|error| context.request.why_unreadable(error));
    let error = outcome.as_ref().err().map(Error::message);
    let mut response = outcome.unwrap_or_else(|error| failure(&context, &error));
    add_headers(&context, &mut response);
    let status = response.status;
    let duration = began.elapsed();
    app.metrics.count_request(context.endpoint, status, duration);
    let entry = AccessLogEntry {
        method: Some(loggable_method(context.request.method())),
        path: Some(loggable_path(context.request.path(), context.has_ids())),
        status,
        duration,
        error: error.as_deref(),
        user: context.account_in_log,
        client,
        id,
    };
    // Monitoring asks every few seconds, so its requests are of interest only if they fail.
    let is_probe = context.endpoint.is_some_and(EndpointName::is_probe) && status < 400;
    let level = if is_probe { Level::Debug } else { Level::Info };
    access_log::write(&entry, level, app.config.log_format);
    response
}

/// Finds the endpoint, lets the request in, and runs the handler.
fn respond(context: &mut RequestContext) -> Result<Response, Error> {
    let request = &context.request;
    let is_local = request.is_local();
    let find = |method| router::find(&context.app.config, is_local, method, request.path());
    #[cfg(feature = "extras")]
    let find = |method| find(super::extras::tus::method(context, method));
    let mut endpoint = match find(request.method()) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            context.is_for_browsers = find("GET").is_ok_and(|it| it.name.is_for_browsers());
            let preflight = cors::preflight(context, &error).filter(|_| !context.is_for_browsers);
            #[cfg(feature = "extras")]
            let preflight = super::extras::tus::options(context, &error, preflight);
            return preflight.ok_or(error);
        }
    };
    context.endpoint = Some(endpoint.name);
    context.is_for_browsers = endpoint.name.is_for_browsers();
    context.needs_admin = matches!(endpoint.handler, Handler::Admin(_) | Handler::SignedInAdmin(_));
    context.path_params = std::mem::take(&mut endpoint.path_params);
    let outcome = enter(context, &endpoint);
    let refused = match outcome {
        Err(Error::AdminRequired | Error::AdminSecondFactorRequired) => {
            Some((RefusedAction::Access, None))
        }
        _ => context.audited,
    };
    if let (Err(error), Some((action, subject))) = (&outcome, refused) {
        context.record_refusal(action, subject, error);
    }
    outcome
}

/// Runs the checks of each kind of endpoint and then its handler. If several checks would fail, the first one here
/// decides the response: authentication, rate limit, API key, whether a personal access token is accepted, role.
fn enter(context: &mut RequestContext, endpoint: &Endpoint) -> Result<Response, Error> {
    match endpoint.handler {
        Handler::Anyone(handle) => {
            admit(context, endpoint, Caller::Anonymous)?;
            handle(context)
        }
        Handler::Refresh(handle) => {
            let token = admit_refresh(context, endpoint)?;
            handle(context, token)
        }
        Handler::SignedIn(handle) => enter_as_user(context, endpoint, handle),
        Handler::User(handle) => enter_as_user(context, endpoint, |context, user| {
            handle(context, &user.require_session()?)
        }),
        Handler::SignedInAdmin(handle) => enter_as_user(context, endpoint, |context, user| {
            handle(context, &user.require_admin(&context.app.config)?)
        }),
        Handler::Admin(handle) => enter_as_user(context, endpoint, |context, user| {
            handle(context, &user.require_session()?.require_admin(&context.app.config)?)
        }),
        Handler::Export(handle) => {
            let user = admit_export(context, endpoint)?;
            handle(context, user.as_ref())
        }
    }
}

/// Lets a user in whom `handle` may refuse for their role.
fn enter_as_user(
    context: &mut RequestContext,
    endpoint: &Endpoint,
    handle: impl FnOnce(&mut RequestContext, &SignedIn) -> Result<Response, Error>,
) -> Result<Response, Error> {
    let user = authenticate(context)?;
    admit(context, endpoint, Caller::User(&user))?;
    handle(context, &user).map_err(|error| why_refused(context, &user, error))
}

/// The error of a handler. If a statement that compares its sender has refused it, looks the sender up again, because
/// only that tells what has ended meanwhile: the session, the account or the role.
fn why_refused(context: &RequestContext, user: &SignedIn, error: Error) -> Error {
    match error {
        Error::InvalidToken(_) => identity::check_again(context, user).err().unwrap_or(error),
        other => other,
    }
}

/// Admits the bearer of a refresh token. The token is read first, because the request counts against the limit of the
/// token's session.
fn admit_refresh(context: &mut RequestContext, endpoint: &Endpoint) -> Result<RefreshToken, Error> {
    let token = identity::refresh_token(context);
    if let Ok(token) = &token {
        context.comes_from(token.user);
    }
    admit(context, endpoint, token.as_ref().map_or(Caller::Anonymous, Caller::Refresh))?;
    token
}

/// Admits whoever may export by the settings, and returns the user, if they ask for one.
fn admit_export(
    context: &mut RequestContext,
    endpoint: &Endpoint,
) -> Result<Option<SignedIn>, Error> {
    let exporters = identity::exporters(context);
    let user = match exporters {
        Exporters::Anyone => None,
        Exporters::Users | Exporters::Admins => Some(authenticate(context)?),
    };
    admit(context, endpoint, user.as_ref().map_or(Caller::Anonymous, Caller::User))?;
    context.needs_admin = exporters == Exporters::Admins;
    if let (true, Some(user)) = (context.needs_admin, &user) {
        user.require_admin(&context.app.config)?;
    }
    Ok(user)
}

/// The signed-in user. A missing or rejected token counts against the client's address, so that tokens cannot be
/// guessed at will.
fn authenticate(context: &mut RequestContext) -> Result<SignedIn, Error> {
    match identity::authenticate(context) {
        Err(error) if matches!(error.status(), 401 | 403) => {
            limits::take(context, Limit::General, Caller::Anonymous)?;
            Err(error)
        }
        outcome => {
            let user = outcome?;
            context.comes_from(user.id());
            Ok(user)
        }
    }
}

/// Applies the rate limit, checks the API key, and refuses personal access tokens that the endpoint does not accept.
/// The limit comes first, so that no refusal can be provoked without limit. A request with such a token counts in the
/// general class: otherwise whoever has stolen one could use up what the owner needs in the endpoint's class. One with
/// a view token counts in their class, and needs no key: it can send no headers.
fn admit(context: &mut RequestContext, endpoint: &Endpoint, caller: Caller) -> Result<(), Error> {
    let accepted = match caller {
        Caller::User(user) => endpoint.accept(user.credential),
        _ => Ok(()),
    };
    let is_view = view_token::of(context).is_some();
    let limit = match accepted {
        Ok(()) if is_view => Some(Limit::Views),
        Ok(()) => endpoint.limit,
        Err(_) => Some(Limit::General),
    };
    if let Some(limit) = limit {
        context.taken = Some(limits::take(context, limit, caller)?);
    }
    if endpoint.needs_api_key && !is_view {
        api_key::check(context, matches!(endpoint.handler, Handler::Export(_)))?;
    }
    accepted
}

/// Takes room for a response in memory, or keeps so much of what was taken before it was made.
fn keep_room(context: &RequestContext, mut response: Response) -> Result<Response, Error> {
    let bytes = match &mut response.body {
        ResponseBody::Bytes(Cow::Owned(body)) => {
            if body.len() > SMALL_BODY {
                body.shrink_to_fit();
            }
            body.len()
        }
        ResponseBody::Parts { memory, .. } => *memory,
        _ => 0,
    };
    context.request.body.resize_room(bytes).map(|()| response)
}

/// Turns a panic into an error. Going on is safe, because what the request left half done is dropped with it, and what
/// requests share is changed only under locks, by code that does not panic.
fn catch_panic(run: impl FnOnce() -> Result<Response, Error>) -> Result<Response, Error> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".into())))
}

/// The response to a failed request. The cause of an unexpected error is logged with the request id and not shown.
fn failure(context: &RequestContext, error: &Error) -> Response {
    if let Error::Internal(cause) = error {
        log::error!("request {}: {cause}", context.id);
    }
    if context.is_for_browsers
        && matches!(error.status(), 429 | 503)
        && context.request.takes_html()
    {
        let page = format!("/console/oidc#error=unavailable&request_id={}", context.id);
        return Response::empty(303).with_header("Location", page).with_header("Vary", "Accept");
    }
    let format = context.app.config.error_format;
    let now = Timestamp::now();
    match context.request.is_form {
        true => grant_error_response(error, format, now),
        false => error_response(error, format, now),
    }
}

/// The client's address. Warns once if requests are forwarded by a peer that is not a trusted proxy, because then all
/// clients of that proxy share its address and the rate limits of that address.
fn find_client(app: &App, request: &Request) -> IpAddr {
    let trusted = &app.config.trusted_proxies;
    let peer = request.peer();
    let mut forwarded = request.headers("X-Forwarded-For").peekable();
    let is_ignored = forwarded.peek().is_some() && !is_trusted_proxy(peer, trusted);
    if is_ignored && !app.warned_of_forwarding.swap(true, Ordering::Relaxed) {
        log::warn!(
            "X-Forwarded-For from {peer}, which is not in CLOAKROOM_TRUSTED_PROXIES, is ignored (said once)"
        );
    }
    client_address(peer, forwarded, trusted)
}

/// Adds the headers that do not depend on the handler.
fn add_headers(context: &RequestContext, response: &mut Response) {
    response.add_header("X-Request-ID", context.id.to_string());
    response.add_header("X-Content-Type-Options", "nosniff");
    response.add_header("Referrer-Policy", "no-referrer");
    let has_cache_control = response.headers.iter().any(|(name, _)| *name == "Cache-Control");
    // Caches may keep a 404 otherwise (RFC 9110, 15.1), such as that of a file of the console which the next version
    // has.
    let is_private = router::is_api(context.request.path()) || response.status >= 400;
    if is_private && !has_cache_control {
        response.add_header("Cache-Control", "no-store");
    }
    #[cfg(feature = "extras")]
    super::extras::tus::add_headers(context, response);
    if let Some(decision) = &context.limit {
        limits::add_headers(response, decision);
    }
    if !context.is_for_browsers {
        let origin = context.request.header("Origin");
        cors::add_headers(response, origin, &context.app.config.cors_origins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let outcome = catch_panic(|| panic!("on purpose"));
        assert!(matches!(outcome, Err(Error::Internal(_))));
    }
}
