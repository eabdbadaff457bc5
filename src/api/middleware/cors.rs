//! Headers for cross-origin requests of browsers (Fetch standard, CORS protocol).

use crate::api::context::RequestContext;
use crate::config::CorsOrigins;
use crate::http::response::Response;

/// Response headers that web pages may read in addition to those that the standard always exposes.
const EXPOSED_HEADERS: &str = "X-Request-ID, WWW-Authenticate, X-RateLimit-Limit, \
                               X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Retry-After, \
                               Retry-After, Content-Disposition, ETag, Content-Range, Accept-Ranges, \
                               Repr-Digest, Location, Idempotency-Replayed";
/// Request headers that web pages may send in addition to those that the standard always allows.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, X-API-Key, X-Request-ID, Range, \
                               If-Range, If-Match, If-None-Match, If-Modified-Since, \
                               If-Unmodified-Since, Idempotency-Key";
/// How long a browser may cache the response to a preflight, in seconds.
const PREFLIGHT_MAX_AGE: &str = "600";

/// The response to a CORS preflight. `None` if the request is not one or CORS is off. `methods` are those of its path.
pub fn preflight(context: &RequestContext, methods: &str) -> Option<Response> {
    let request = &context.request;
    let is_preflight = request.method() == "OPTIONS"
        && request.header("Origin").is_some()
        && request.header("Access-Control-Request-Method").is_some();
    if !is_preflight || context.app.config.cors_origins == CorsOrigins::Off {
        return None;
    }
    let response = Response::empty(204)
        .with_header("Access-Control-Allow-Methods", methods.to_owned())
        .with_header("Access-Control-Allow-Headers", ALLOWED_HEADERS)
        .with_header("Access-Control-Max-Age", PREFLIGHT_MAX_AGE);
    Some(response)
}

/// Adds the headers that tell a browser whether a page of `origin` may read the response. Credentials are never
/// allowed, because tokens travel in a header and not in cookies.
pub fn add_headers(response: &mut Response, origin: Option<&str>, allowed: &CorsOrigins) {
    let granted = match allowed {
        CorsOrigins::Off => return,
        CorsOrigins::Any => Some("*".to_owned()),
        CorsOrigins::List(origins) => {
            response.add_header("Vary", "Origin");
            origin.map(str::to_ascii_lowercase).filter(|origin| origins.contains(origin))
        }
    };
    if let Some(granted) = granted {
        response.add_header("Access-Control-Allow-Origin", granted);
        response.add_header("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    }
}
