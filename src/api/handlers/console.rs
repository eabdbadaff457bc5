//! The console: pages for people in a browser, which use the API as any other client does.

use crate::api::console::Found;
use crate::api::context::RequestContext;
use crate::error::Error;
use crate::http::response::Response;

/// The Content-Security-Policy of the page: it loads from this service only, has no script and no style in itself, and
/// makes no HTML of texts (Trusted Types). The service's QR codes are `data:` pictures.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The path has a hash of the content, so a browser need never ask again (RFC 8246).
const FOREVER: &str = "public, max-age=31536000, immutable";

/// `GET /console`, and every path below it. `/console/<hash>/<file>` is a file, or 404 if it is one of another version,
/// which a page that was loaded before an upgrade may ask for. Any other is the page, whose script shows what the path
/// names, so that a path of the console can be opened and reloaded.
pub fn show(context: &mut RequestContext) -> Result<Response, Error> {
    let console = context.app.console();
    let path = context.request.path().strip_prefix("/console/").unwrap_or_default();
    match console.find(path.strip_suffix('/').unwrap_or(path)) {
        Found::Page(page) => {
            let page = page.respond(&context.request).with_header("Cache-Control", "no-cache");
            let page = page.with_header("Content-Security-Policy", POLICY);
            // A page of another origin that opens this one, or is opened by it, gets no hold of its window.
            Ok(page.with_header("Cross-Origin-Opener-Policy", "same-origin"))
        }
        Found::File(file) => {
            Ok(file.respond(&context.request).with_header("Cache-Control", FOREVER))
        }
        Found::Nothing => Err(context.app.route_not_found()),
    }
}
