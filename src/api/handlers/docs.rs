//! The OpenAPI document, and the pages that show it: Swagger UI, on which requests can be tried, and ReDoc, which is
//! better to read. Everything that the pages load is part of the binary, and a Content-Security-Policy keeps them from
//! loading anything from another host.
//!
//! `scripts/docs-assets` made the files in `docs/` whose names end in `.gz`, and the licences.

use crate::api::context::RequestContext;
use crate::error::Error;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::model::media_type::without_parameters;

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The Content-Security-Policy of `/docs`. Swagger UI shows downloaded pictures and sounds from `blob:` URLs that it
/// makes itself.
const SWAGGER_UI_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; media-src blob:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The Content-Security-Policy of `/redoc`. ReDoc adds style sheets to the page while it runs, and searches in a worker
/// whose script it makes itself.
const REDOC_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; worker-src blob:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /openapi.json`: the OpenAPI document of this service.
pub fn openapi(context: &mut RequestContext) -> Result<Response, Error> {
    let document = context.app.document().respond(&context.request);
    Ok(document.with_header("Cache-Control", "no-cache"))
}

/// `GET /`: redirects browsers to the console, or to `/docs` if there is none. Clients whose `Accept` does not name
/// `text/html` get 404.
pub fn root(context: &mut RequestContext) -> Result<Response, Error> {
    let mut types = context.request.headers("Accept").flat_map(|list| list.split(','));
    if !types.any(|one| without_parameters(Some(one)) == "text/html") {
        return Err(context.app.route_not_found());
    }
    let page = if context.app.config.console { "/console" } else { "/docs" };
    // 303 and not 302, because the page is not `/` at another place (RFC 9110, 15.4.4).
    Ok(Response::empty(303).with_header("Location", page).with_header("Vary", "Accept"))
}

/// `GET /docs`: the page with Swagger UI.
pub fn swagger_ui(_: &mut RequestContext) -> Result<Response, Error> {
    let page = text(HTML, include_str!("docs/swagger-ui.html"));
    Ok(page.with_header("Content-Security-Policy", SWAGGER_UI_POLICY))
}

/// `GET /docs/start.js`: starts Swagger UI, with plugins of our own. It is a file of its own because the
/// Content-Security-Policy allows no script inside the page.
pub fn start_script(_: &mut RequestContext) -> Result<Response, Error> {
    Ok(text(JAVASCRIPT, include_str!("docs/start.js")))
}

/// `GET /docs/style.css`: makes Swagger UI fit a phone, and hides what its sign-in dialog asks for and this service
/// does not use.
pub fn style_sheet(_: &mut RequestContext) -> Result<Response, Error> {
    Ok(text(CSS, include_str!("docs/style.css")))
}

/// `GET /docs/swagger-ui.js`: the script of Swagger UI.
pub fn swagger_ui_script(context: &mut RequestContext) -> Result<Response, Error> {
    let file = include_bytes!("docs/swagger-ui.js.gz");
    Ok(gzip(&context.request, JAVASCRIPT, file))
}

/// `GET /docs/swagger-ui.css`: the style sheet of Swagger UI.
pub fn swagger_ui_style(context: &mut RequestContext) -> Result<Response, Error> {
    let file = include_bytes!("docs/swagger-ui.css.gz");
    Ok(gzip(&context.request, CSS, file))
}

/// `GET /docs/licenses.txt`: the licences of Swagger UI and ReDoc, which require that every copy comes with them.
pub fn licenses(_: &mut RequestContext) -> Result<Response, Error> {
    Ok(text(PLAIN_TEXT, include_str!("docs/licenses.txt")))
}

/// `GET /redoc`: the page with ReDoc.
pub fn redoc(_: &mut RequestContext) -> Result<Response, Error> {
    let page = text(HTML, include_str!("docs/redoc.html"));
    Ok(page.with_header("Content-Security-Policy", REDOC_POLICY))
}

/// `GET /redoc/redoc.js`: the script of ReDoc.
pub fn redoc_script(context: &mut RequestContext) -> Result<Response, Error> {
    let file = include_bytes!("docs/redoc.js.gz");
    Ok(gzip(&context.request, JAVASCRIPT, file))
}

/// 200 with an embedded text. It has no entity tag and is sent anew each time, so it should be short.
fn text(content_type: &'static str, text: &'static str) -> Response {
    Response::new(200, content_type, text.as_bytes()).with_header("Cache-Control", "no-cache")
}

/// 200 with a file that is stored compressed by gzip, or 304 if the client has it already.
///
/// The file is sent as it is stored, whatever `Accept-Encoding` says, so caches need no `Vary`. A client that does not
/// accept gzip should get it uncompressed (RFC 9110, 12.5.3), but every browser accepts gzip, and these files are only
/// for browsers. So the binary needs no decompressor.
///
/// The entity tag is the last eight bytes of the file, which are the CRC-32 and the length of the uncompressed content
/// (RFC 1952, 2.3.1).
fn gzip(request: &Request, content_type: &'static str, file: &'static [u8]) -> Response {
    let end = file.last_chunk::<8>().copied().unwrap_or_default();
    let tag = format!("\"{:016x}\"", u64::from_be_bytes(end));
    let response = if request.knows_tag(&tag) == Some(true) {
        Response::empty(304)
    } else {
        Response::new(200, content_type, file).with_header("Content-Encoding", "gzip")
    };
    response.with_header("ETag", tag).with_header("Cache-Control", "no-cache")
}
