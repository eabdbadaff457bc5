//! What the protocol of uploads in several requests (tus 1.0.0) asks of all requests to their paths.

use crate::error::Error;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::request::context::RequestContext;
use crate::service::router;

/// The extensions of the protocol that are spoken here.
const EXTENSIONS: &str = "creation,creation-with-upload,expiration,termination";

/// Whether an endpoint is of such uploads, or of one of them.
fn is_of_uploads(template: &str) -> bool {
    template.starts_with("/uploads/partial") || template.starts_with("/links/{token}/partial")
}

/// The method that the path of a request has an endpoint for, if one of these is that of such uploads.
fn template(context: &RequestContext, methods: &[&str]) -> Option<&'static str> {
    let request: &Request = &context.request;
    let found = methods.iter().find_map(|method| {
        router::find(&context.app.config, request.is_local(), method, request.path()).ok()
    })?;
    Some(found.name.template).filter(|template| is_of_uploads(template))
}

/// The method of a request to an upload, for networks that know neither `PATCH` nor `DELETE`, or `method`.
pub fn method<'a>(context: &RequestContext, method: &'a str) -> &'a str {
    let wanted = context.request.header("X-HTTP-Method-Override").unwrap_or_default();
    match ["PATCH", "DELETE"].into_iter().find(|known| *known == wanted) {
        Some(wanted) if method == "POST" && template(context, &[wanted]).is_some() => wanted,
        _ => method,
    }
}

/// The response to `OPTIONS`, which says what is spoken here, also if it is no preflight.
pub fn options(
    context: &RequestContext,
    error: &Error,
    preflight: Option<Response>,
) -> Option<Response> {
    let is_refused = matches!(error, Error::MethodNotAllowed(_));
    if !is_refused
        || context.request.method() != "OPTIONS"
        || template(context, &["POST", "DELETE"]).is_none()
    {
        return preflight;
    }
    let response = preflight.unwrap_or_else(|| Response::empty(204));
    Some(
        response
            .with_header("Tus-Resumable", "1.0.0")
            .with_header("Tus-Version", "1.0.0")
            .with_header("Tus-Extension", EXTENSIONS)
            .with_header("Tus-Max-Size", context.app.config.max_upload_size.to_string()),
    )
}

/// Says in all other responses which version they are of.
pub fn add_headers(context: &RequestContext, response: &mut Response) {
    if context.endpoint.is_some_and(|endpoint| is_of_uploads(endpoint.template)) {
        response.add_header("Tus-Resumable", "1.0.0");
    }
}
