//! Pages for people and what they load, which are parts of the binary: the console (`docs/console.rs`), the OpenAPI
//! document, and two pages that show it: Swagger UI, on which requests can be tried, and ReDoc, which is better to
//! read. A Content-Security-Policy keeps them from loading anything from another host.
//!
//! `scripts/docs-assets` made the files in `assets/` whose names end in `.gz`, and the licences.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzEncoder;
use sha2::{Digest, Sha256};

#[cfg(feature = "extras")]
use super::console;
use crate::config::Config;
use crate::http::conditions::Conditions;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::model::hex;

/// The pages about the API and what they load: path, name of the file, and its content.
const DOCS: [(&str, &str, &[u8]); 8] = [
    ("/docs", "swagger-ui.html", include_bytes!("assets/swagger-ui.html")),
    ("/docs/start.js", "start.js", include_bytes!("assets/start.js")),
    ("/docs/style.css", "style.css", include_bytes!("assets/style.css")),
    ("/docs/swagger-ui.js", "swagger-ui.js.gz", include_bytes!("assets/swagger-ui.js.gz")),
    ("/docs/swagger-ui.css", "swagger-ui.css.gz", include_bytes!("assets/swagger-ui.css.gz")),
    ("/docs/licenses.txt", "licenses.txt", include_bytes!("assets/licenses.txt")),
    ("/redoc", "redoc.html", include_bytes!("assets/redoc.html")),
    ("/redoc/redoc.js", "redoc.js.gz", include_bytes!("assets/redoc.js.gz")),
];

const POLICY: &str = "Content-Security-Policy";

/// The console has no script and no style in its page, and makes no HTML of texts (Trusted Types). The service's QR
/// codes are `data:` pictures.
const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Swagger UI shows downloaded pictures and sounds from `blob:` URLs that it makes itself.
const SWAGGER_UI_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; media-src blob:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// ReDoc adds style sheets to the page while it runs, and searches in a worker whose script it makes itself.
const REDOC_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; worker-src blob:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The path of the page of the console that paths without one of their own have.
const HOME: &str = "/console/files";

/// Digits of the hash in the paths of the console.
const VERSION_DIGITS: usize = 16;

/// All pages, as they are sent with the settings of the service.
pub struct Pages {
    by_path: HashMap<String, Page>,
    /// The page to which `/` leads.
    start: &'static str,
}

impl Pages {
    /// Compresses all pages, which are kept for as long as the process runs.
    pub fn new(config: &Config, document: String) -> Pages {
        let page = |path: &str, name, content| (path.to_owned(), Page::new(name, content));
        let mut by_path =
            HashMap::from([page("/openapi.json", "openapi.json", document.into_bytes().into())]);
        #[cfg(feature = "extras")]
        by_path.extend(
            console::files(config)
                .map(|(path, name, content)| page(&path, name, content.into_bytes().into())),
        );
        by_path.extend(DOCS.map(|(path, name, content)| page(path, name, content.into())));
        Pages { by_path, start: if config.console { "/console" } else { "/docs" } }
    }

    /// The response to a request for a page; `None` if there is none with its path.
    pub fn respond(&self, request: &Request) -> Option<Response> {
        let path = percent_encoding::percent_decode_str(request.path()).decode_utf8_lossy();
        match path.trim_end_matches('/') {
            "" => self.start(request),
            path => self.find(path).map(|(path, page)| page.respond(path, request)),
        }
    }

    /// The page at a path. Any path of the console is its page, whose script shows what the path names, so that it can
    /// be opened and reloaded; but not one with the hash of other files, which a page that was loaded before an upgrade
    /// may ask for.
    fn find(&self, path: &str) -> Option<(&String, &Page)> {
        let below = path.strip_prefix("/console/").unwrap_or_default();
        let (version, _) = below.split_once('/').unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_file = version.len() == VERSION_DIGITS && version.bytes().all(is_digit);
        let page = if below.is_empty() || is_file { None } else { Some(HOME) };
        self.by_path.get_key_value(path).or_else(|| self.by_path.get_key_value(page?))
    }

    /// Redirects browsers to the first page. For clients whose `Accept` does not name `text/html` there is nothing.
    fn start(&self, request: &Request) -> Option<Response> {
        // 303 and not 302, because the page is not `/` at another place (RFC 9110, 15.4.4).
        let response = || Response::empty(303).with_header("Location", self.start);
        request.takes_html().then(|| response().with_header("Vary", "Accept"))
    }
}

/// The headers of what is at a path, which may be HTML, beside those of its content.
fn headers(path: &str, is_html: bool) -> &'static [(&'static str, &'static str)] {
    const ASK_AGAIN: (&str, &str) = ("Cache-Control", "no-cache");
    // The path has a hash of the content, so a browser need never ask again (RFC 8246).
    const FOREVER: (&str, &str) = ("Cache-Control", "public, max-age=31536000, immutable");
    // Other origins get no reference to this window.
    const ALONE: (&str, &str) = ("Cross-Origin-Opener-Policy", "same-origin");
    match path {
        "/docs" => &[ASK_AGAIN, (POLICY, SWAGGER_UI_POLICY)],
        "/redoc" => &[ASK_AGAIN, (POLICY, REDOC_POLICY)],
        path if path.starts_with("/console") => match is_html {
            true => &[ASK_AGAIN, ALONE, (POLICY, CONSOLE_POLICY)],
            false => &[FOREVER],
        },
        _ => &[ASK_AGAIN],
    }
}

/// What is sent for a path, in both forms. Compressing takes longer than all else that an answer needs.
struct Page {
    content_type: &'static str,
    /// `None` for a file that is stored compressed. It is sent so whatever `Accept-Encoding` says, because it is only
    /// for browsers, which all accept gzip, and so the binary needs no decompressor.
    plain: Option<Form>,
    /// Compressed by gzip.
    gzip: Form,
}

impl Page {
    /// The name is that of the file, whose end says what it is.
    fn new(name: &str, content: Cow<'static, [u8]>) -> Page {
        if let Some(name) = name.strip_suffix(".gz") {
            return Page {
                content_type: content_type(name),
                plain: None,
                gzip: Form::new(content),
            };
        }
        let mut gzip = Vec::new();
        // It cannot fail, because it reads from memory.
        let _ = GzEncoder::new(&*content, Compression::best()).read_to_end(&mut gzip);
        let (plain, gzip) = (Some(Form::new(content)), Form::new(gzip.into()));
        Page { content_type: content_type(name), plain, gzip }
    }

    /// 200 with the form that the client prefers, or 304 if it has that already.
    fn respond(&self, path: &str, request: &Request) -> Response {
        let plain = self.plain.as_ref().filter(|_| !prefers_gzip(request));
        let form = plain.unwrap_or(&self.gzip);
        let mut response = if Conditions::read(request).has_seen(&form.tag) {
            Response::empty(304)
        } else {
            Response::new(200, self.content_type, form.content)
        };
        if plain.is_none() && response.status == 200 {
            response.add_header("Content-Encoding", "gzip");
        }
        for (name, value) in headers(path, self.content_type.starts_with("text/html")) {
            response.add_header(name, *value);
        }
        response.with_header("Vary", "Accept-Encoding").with_header("ETag", form.tag.clone())
    }
}

/// A form in which a page is sent, see RFC 9110, 3.2.
struct Form {
    /// All responses share it, because each would need hundreds of kilobytes otherwise, for as long as its client does
    /// not read it.
    content: &'static [u8],
    /// The entity tag, with its quotes: the beginning of the hash of the content. The forms have tags of their own
    /// (RFC 9110, 8.8.3.3).
    tag: String,
}

impl Form {
    /// Keeps the content for as long as the process runs.
    fn new(content: Cow<'static, [u8]>) -> Form {
        let tag = format!("\"{}\"", hex(&Sha256::digest(&content)[..8]));
        let content = match content {
            Cow::Borrowed(content) => content,
            Cow::Owned(content) => content.leak(),
        };
        Form { content, tag }
    }
}

/// The media type of a file by the end of its name.
fn content_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

/// Whether the client takes gzip, and likes it no less than no coding at all (RFC 9110, 12.5.3). One without
/// `Accept-Encoding` may get any, but is often a simple program that reads only what is not compressed.
fn prefers_gzip(request: &Request) -> bool {
    let weight =
        |coding: &str| request.elements("Accept-Encoding").find_map(|item| weight_of(item, coding));
    let others = weight("*");
    let gzip = weight("gzip").or(others).unwrap_or(0.0);
    gzip > 0.0 && gzip >= weight("identity").or(others).unwrap_or(0.0)
}

/// The weight of an item of `Accept-Encoding`, such as `gzip;q=0.5`, if it is about this coding. One that cannot be
/// read counts as a refusal.
fn weight_of(item: &str, coding: &str) -> Option<f32> {
    let mut words = item.split(';').map(|word| word.trim_matches([' ', '\t']));
    if !words.next()?.eq_ignore_ascii_case(coding) {
        return None;
    }
    let weight = words.find_map(|word| word.strip_prefix("q=").or(word.strip_prefix("Q=")));
    Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

#[cfg(all(test, feature = "extras"))]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    #[test]
    fn only_paths_with_a_hash_name_files_and_only_those_of_this_version_are_there() {
        let pages = Pages::new(&Config::of_test_database(), String::new());
        for (path, page) in &pages.by_path {
            assert_ne!(page.content_type, "application/octet-stream", "{path}");
        }
        let file = pages.by_path.keys().find(|path| path.ends_with("/api.js")).expect("a file");
        let folder = file.strip_suffix("/api.js").expect("its folder");
        let found = |path: &str| pages.find(path).map(|(path, _)| path.clone());
        assert_eq!(found(file).as_ref(), Some(file));
        for path in ["/console/0123456789abcdef/api.js", &format!("{folder}/x.js"), "/docs/x.js"] {
            assert_eq!(found(path), None, "{path}");
        }
        for path in
            ["/console/files/7", "/console/0123456789ABCDEF/api.js", "/console/users/7", folder]
        {
            assert_eq!(found(path).as_deref(), Some(HOME), "{path}");
        }
        for path in ["/console", "/console/link", "/console/send"] {
            assert_eq!(found(path).as_deref(), Some(path));
        }
    }
}
