//! Headers for cross-origin requests of browsers (Fetch standard, CORS protocol).

use crate::config::{CorsOrigins, is_token};
use crate::error::Error;
use crate::http::response::Response;
use crate::request::context::RequestContext;

/// Response headers that web pages may read in addition to those that the standard always exposes.
const EXPOSED_HEADERS: &str = "X-Request-ID, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, \
     X-RateLimit-Reset, X-RateLimit-Retry-After, Retry-After, Content-Disposition, ETag, Content-Range, Accept-Ranges, \
     Repr-Digest, Location, Idempotency-Replayed, Accept-Encoding, Content-Location, Upload-Offset, Upload-Length, \
     Upload-Expires, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size";
/// How long a browser may cache the response to a preflight, in seconds.
const PREFLIGHT_MAX_AGE: &str = "600";

/// The response to a CORS preflight. `None` if the request is not one or CORS is off. `refusal` is the error that it
/// gets otherwise. An unknown path allows any method, because only then does the page see the 404 of its request. All
/// headers that the page asks for are allowed: tools that are built into pages send some of their own, and none of them
/// gives a page more rights.
pub fn preflight(context: &RequestContext, refusal: &Error) -> Option<Response> {
    let request = &context.request;
    let method = request.header("Access-Control-Request-Method")?;
    request.header("Origin")?;
    if request.method() != "OPTIONS" || context.app.config.cors_origins == CorsOrigins::Off {
        return None;
    }
    let methods = match refusal {
        Error::MethodNotAllowed(methods) => methods,
        _ => Some(method).filter(|method| is_token(method)).unwrap_or_default(),
    };
    let asked = request.elements("Access-Control-Request-Headers");
    let headers: Vec<&str> = asked.filter(|name| is_token(name)).collect();
    let response = Response::empty(204)
        .with_header("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
        .with_header("Access-Control-Allow-Methods", methods.to_owned())
        .with_header("Access-Control-Allow-Headers", headers.join(", "))
        .with_header("Access-Control-Max-Age", PREFLIGHT_MAX_AGE);
    Some(response)
}

/// Adds the headers that tell a browser whether a page of `origin` may read the response. Origins that are listed by
/// name may send credentials too, because pages ask for that without need, and browsers hide the response from them
/// otherwise. No cookie or certificate says here who somebody is.
pub fn add_headers(response: &mut Response, origin: Option<&str>, allowed: &CorsOrigins) {
    let granted = match allowed {
        CorsOrigins::Off => return,
        CorsOrigins::Any => "*".to_owned(),
        CorsOrigins::List(origins) => {
            response.add_header("Vary", "Origin");
            let origin = origin.map(str::to_ascii_lowercase);
            let Some(origin) = origin.filter(|origin| origins.contains(origin)) else { return };
            response.add_header("Access-Control-Allow-Credentials", "true");
            origin
        }
    };
    response.add_header("Access-Control-Allow-Origin", granted);
    response.add_header("Access-Control-Expose-Headers", EXPOSED_HEADERS);
}
