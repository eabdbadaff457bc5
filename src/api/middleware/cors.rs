//! Cross-origin requests of browsers (Fetch standard, CORS protocol).

use crate::api::context::RequestContext;
use crate::config::CorsOrigins;
use crate::http::response::{Response, no_content};

/// Headers a page may read beside the always readable ones.
const EXPOSED: &str = "X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, \
                       X-RateLimit-Retry-After, Retry-After, Content-Disposition, ETag";
/// Headers a page may send.
const ALLOWED: &str = "Authorization, Content-Type, X-API-Key, X-Request-ID";

/// The answer to a preflight, where CORS is on and the request is one; `methods` are those of its path.
pub fn preflight(context: &RequestContext, methods: &str) -> Option<Response> {
    let request = &context.request;
    let asks = request.method() == "OPTIONS"
        && request.header("Origin").is_some()
        && request.header("Access-Control-Request-Method").is_some();
    if !asks || context.app.config.cors_origins == CorsOrigins::Off {
        return None;
    }
    let mut response = no_content();
    response.headers.extend([
        ("Access-Control-Allow-Methods".into(), methods.to_owned().into()),
        ("Access-Control-Allow-Headers".into(), ALLOWED.into()),
        ("Access-Control-Max-Age".into(), "600".into()),
    ]);
    Some(response)
}

/// Says whether the page that asked may read the answer. Credentials are never allowed: tokens travel
/// in a header, not in cookies.
pub fn add_headers(response: &mut Response, origin: Option<&str>, allowed: &CorsOrigins) {
    let granted = match allowed {
        CorsOrigins::Off => return,
        CorsOrigins::Any => Some("*".to_owned()),
        CorsOrigins::List(origins) => {
            response.headers.push(("Vary".into(), "Origin".into()));
            let origin = origin.map(str::to_ascii_lowercase);
            origin.filter(|origin| origins.contains(origin))
        }
    };
    if let Some(granted) = granted {
        response.headers.push(("Access-Control-Allow-Origin".into(), granted.into()));
        response.headers.push(("Access-Control-Expose-Headers".into(), EXPOSED.into()));
    }
}
