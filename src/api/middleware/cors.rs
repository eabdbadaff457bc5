//! Cross-origin requests of browsers (Fetch standard, CORS protocol).

use crate::api::context::RequestContext;
use crate::config::CorsOrigins;
use crate::http::response::{Response, no_content};

/// Response headers that pages may read beside those the standard always lets them read.
const EXPOSED_HEADERS: &str = "X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, \
                               X-RateLimit-Retry-After, Retry-After, Content-Disposition, ETag";
/// Request headers that pages may send beside those the standard always lets them send.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, X-API-Key, X-Request-ID";
/// How long a browser may remember a preflight's answer, seconds.
const PREFLIGHT_MAX_AGE: &str = "600";

/// The response to a preflight, where the request is one and CORS is on. `methods` are those of its path.
pub fn preflight(context: &RequestContext, methods: &str) -> Option<Response> {
    let request = &context.request;
    let is_preflight = request.method() == "OPTIONS"
        && request.header("Origin").is_some()
        && request.header("Access-Control-Request-Method").is_some();
    if !is_preflight || context.app.config.cors_origins == CorsOrigins::Off {
        return None;
    }
    let mut response = no_content();
    response.headers.extend([
        ("Access-Control-Allow-Methods".into(), methods.to_owned().into()),
        ("Access-Control-Allow-Headers".into(), ALLOWED_HEADERS.into()),
        ("Access-Control-Max-Age".into(), PREFLIGHT_MAX_AGE.into()),
    ]);
    Some(response)
}

/// Tells the browser whether the page of `origin` may read the response. Credentials are never allowed, because
/// tokens travel in a header and not in cookies.
pub fn add_headers(response: &mut Response, origin: Option<&str>, allowed: &CorsOrigins) {
    let granted = match allowed {
        CorsOrigins::Off => return,
        CorsOrigins::Any => Some("*".to_owned()),
        CorsOrigins::List(origins) => {
            response.headers.push(("Vary".into(), "Origin".into()));
            origin.map(str::to_ascii_lowercase).filter(|origin| origins.contains(origin))
        }
    };
    if let Some(granted) = granted {
        response.headers.push(("Access-Control-Allow-Origin".into(), granted.into()));
        response.headers.push(("Access-Control-Expose-Headers".into(), EXPOSED_HEADERS.into()));
    }
}
