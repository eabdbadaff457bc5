//! A request as handlers see it: its head, and a body that is read only when they ask for it.

use std::io::Read;
use std::net::IpAddr;

use uuid::Uuid;

use super::body::Body;
use super::multipart::Multipart;
use super::params::Params;
use crate::body_memory::SMALL_BODY;
use crate::config::{CorsOrigins, is_loopback};
use crate::error::{Error, FieldError, FieldLocation, TokenProblem};
use crate::model::media_type::without_parameters;
use crate::model::problems::{NOT_JSON, NOT_MULTIPART, NOT_UTF8};

/// Longest JSON or form body, in bytes, and that of a refresh, which is read before it is known who sends it.
pub const MAX_TEXT_BODY: u64 = 128 * 1024;
pub const MAX_REFRESH_BODY: u64 = 8 * 1024;

/// The media types of HTML forms.
const URL_ENCODED: &str = "application/x-www-form-urlencoded";
const FORM_DATA: &str = "multipart/form-data";

/// The id of a request, for the log and the response header `X-Request-ID`: the one that the client sent, if it is a
/// UUID, otherwise a new one. Other text is not taken over into the log.
pub fn request_id(header: Option<&str>) -> Uuid {
    header.and_then(|text| text.trim_matches([' ', '\t']).parse().ok()).unwrap_or_else(Uuid::new_v4)
}

/// One request: the head as the server parsed it, and the body, of which nothing may have arrived yet.
pub struct Request<'a> {
    head: &'a rouille::Request,
    pub body: Body<'a>,
    /// Whether [`Request::json_or_form`] has read an HTML form.
    pub is_form: bool,
}

impl<'a> Request<'a> {
    pub fn new(head: &'a rouille::Request, body: Body<'a>) -> Request<'a> {
        Request { head, body, is_form: false }
    }

    /// The method as the client sent it. Methods are case-sensitive (RFC 9110, 9.1).
    pub fn method(&self) -> &'a str {
        self.head.method()
    }

    /// The path without the query, still percent-encoded.
    pub fn path(&self) -> &'a str {
        self.head.raw_url().split('?').next().unwrap_or_default()
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.head.header(name)
    }

    /// All headers of that name, in the order in which they were sent.
    pub fn headers(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let named: Vec<_> =
            self.head.headers().filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
        named.into_iter().map(|(_, value)| value)
    }

    /// The elements of all headers of that name, which are lists (RFC 9110, 5.6.1). An empty value is one empty
    /// element.
    pub fn elements(&self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let all = self.headers(name).flat_map(|list| list.split(','));
        all.map(|element| element.trim_matches([' ', '\t']))
    }

    /// The token in the `Authorization` header, which must consist of `Bearer`, in upper or lower case, and one word
    /// (RFC 6750, 2.1). One that is not UTF-8 is no token of ours, whatever scheme it names.
    pub fn bearer_token(&self) -> Result<&'a str, Error> {
        let value = self.header("Authorization").unwrap_or_default();
        let mut words = value.split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => Err(Error::AuthenticationRequired),
            _ if value.contains('\u{fffd}') => Err(Error::InvalidToken(TokenProblem::NotOurs)),
            (Some(word), ..) if !word.eq_ignore_ascii_case("bearer") => Err(Error::InvalidScheme),
            (_, Some(token), None) => Ok(token),
            _ => Err(Error::InvalidAuthorization),
        }
    }

    /// The address at the other end of the connection, which may be a proxy's.
    pub fn peer(&self) -> IpAddr {
        self.head.remote_addr().ip()
    }

    /// Whether the client is on this host: the peer is, and no header says that it is a proxy.
    pub fn is_local(&self) -> bool {
        let forwarding = ["X-Forwarded-For", "Forwarded"];
        self.peer().to_canonical().is_loopback()
            && forwarding.iter().all(|name| self.header(name).is_none())
    }

    /// Whether no foreign web page can have sent the request through the browser of somebody on this host. What a
    /// service of a developer allows to this host alone must not be open to every page that a browser on it shows.
    /// `listed` are origins that are trusted too; `*` lists none.
    pub fn is_from_trusted_page(&self, listed: &CorsOrigins) -> bool {
        is_from_trusted_page(self.header("Host"), self.headers("Origin"), listed)
    }

    /// Whether `Accept` names `text/html`, as browsers do when they open an address. `*/*`, which most programs send,
    /// does not count.
    pub fn takes_html(&self) -> bool {
        self.elements("Accept").any(|one| without_parameters(one) == "text/html")
    }

    /// The parameters in the query.
    pub fn query(&self) -> Params {
        Params::from_urlencoded(FieldLocation::Query, self.head.raw_query_string())
    }

    /// The parameters in a JSON body, whatever its `Content-Type` says.
    pub fn json(&mut self) -> Result<Params, Error> {
        let bytes = self.body.read_all(MAX_TEXT_BODY)?;
        self.parse_json(&bytes)
    }

    /// Like [`Request::json`], but accepts an HTML form as well, because the password grant of OAuth 2.0 is one
    /// (RFC 6749, 4.3.2), in either encoding. The body is a form if `Content-Type` says so, unless it begins like a
    /// JSON object: some clients, such as curl, send JSON with the type of a form. It may have `limit` bytes.
    pub fn json_or_form(&mut self, limit: u64) -> Result<Params, Error> {
        let bytes = self.body.read_all(limit)?;
        let first = bytes.trim_ascii_start().first();
        let content_type = self.header("Content-Type").unwrap_or_default();
        let media_type = without_parameters(content_type);
        self.is_form = first != Some(&b'{') && [URL_ENCODED, FORM_DATA].contains(&&*media_type);
        match &*media_type {
            _ if !self.is_form || first.is_none() => self.parse_json(&bytes),
            FORM_DATA => form_data(content_type, &bytes),
            _ => Ok(Params::from_urlencoded(FieldLocation::Body, text(&bytes)?)),
        }
    }

    /// Parses a JSON body; of several large ones at the same time one after the other.
    fn parse_json(&self, bytes: &[u8]) -> Result<Params, Error> {
        let room = self.body.room.as_ref().filter(|_| bytes.len() > SMALL_BODY);
        let _turn = room.map(|room| room.parsing_turn());
        Params::from_json(text(bytes)?)
    }

    /// The error of this request: if its body cannot be read, and has a content coding, that is why, because none is
    /// decoded.
    pub fn why_unreadable(&self, error: Error) -> Error {
        let mut codings = self.elements("Content-Encoding").map(str::to_ascii_lowercase);
        let is_coded = !codings.all(|coding| ["", "identity"].contains(&&*coding));
        let is_unreadable = match &error {
            Error::Invalid(errors) => errors.iter().any(|error| {
                (error.location, error.field) == (FieldLocation::Body, None)
                    && [NOT_JSON, NOT_UTF8, NOT_MULTIPART].contains(&error.problem)
            }),
            other => matches!(other, Error::BodyCutShort | Error::BodyMalformed),
        };
        if is_coded && is_unreadable { Error::EncodingNotSupported } else { error }
    }

    /// Parses a `multipart/form-data` body of at most `limit` bytes.
    pub fn multipart(&mut self, limit: u64) -> Result<Multipart<'_, 'a>, Error> {
        self.body.set_limit(limit)?;
        let content_type = self.head.header("Content-Type").unwrap_or_default();
        Multipart::new(&mut self.body, content_type)
    }
}

/// The parameters in a `multipart/form-data` body, whose boundary stands in `content_type`. Parts that are files are
/// ignored. Of several others with the same name the last one counts.
fn form_data(content_type: &str, mut bytes: &[u8]) -> Result<Params, Error> {
    let mut body = Body::new(|buffer, _| bytes.read(buffer), None);
    body.set_limit(u64::MAX)?;
    let mut parts = Multipart::new(&mut body, content_type)?;
    let mut form = Params::new(FieldLocation::Body);
    while let Some(part) = parts.next()? {
        if part.filename.is_none() {
            let text = parts.text(usize::MAX)?;
            form.set(&part.name, text.ok_or_else(|| FieldError::of_body(NOT_UTF8))?);
        }
    }
    Ok(form)
}

/// The text of a body.
fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| FieldError::of_body(NOT_JSON))
}

/// Whether no foreign web page can have sent a request with this `Host` and these `Origin` headers.
///
/// A page can make its own name resolve to a loopback address, and is then of the same origin as this service (DNS
/// rebinding). So the host must be one that no stranger can register: an address, `localhost`, a name below it, one
/// without a dot as container networks have them, or the host of a listed origin. A page of another origin can send
/// requests without reading the answers (cross-site request forgery). Browsers name its origin, which must be on
/// this host or listed.
fn is_from_trusted_page<'a>(
    host: Option<&str>,
    mut origins: impl Iterator<Item = &'a str>,
    listed: &CorsOrigins,
) -> bool {
    let listed: &[String] = match listed {
        CorsOrigins::List(origins) => origins,
        CorsOrigins::Off | CorsOrigins::Any => &[],
    };
    let host = host.map(|host| name(host).to_ascii_lowercase()).unwrap_or_default();
    let is_listed = || listed.iter().any(|origin| host_of(origin) == Some(host.as_str()));
    let is_known = host.parse::<IpAddr>().is_ok() || is_local_name(&host) || !host.contains('.');
    let is_trusted_origin = |origin: &str| {
        let origin = origin.to_ascii_lowercase();
        let is_local = |host: &str| is_loopback(host) || is_local_name(host);
        listed.contains(&origin) || host_of(&origin).is_some_and(is_local)
    };
    !host.is_empty() && (is_known || is_listed()) && origins.all(is_trusted_origin)
}

/// Whether the name always means this host (RFC 6761, 6.3).
fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// The host of an origin, which is `scheme://host[:port]`.
fn host_of(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, host)| name(host))
}

/// The name or address in `host[:port]`, without the brackets of an IPv6 address.
fn name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_and_origins_that_no_stranger_can_have_are_trusted() {
        let listed = CorsOrigins::List(vec!["https://app.example.com".into()]);
        for (host, origin, expected) in [
            ("127.0.0.1:8000", None, true),
            ("192.168.1.7:8000", None, true),
            ("[::1]:8000", None, true),
            ("LOCALHOST", None, true),
            ("files.localhost:8000", None, true),
            ("api:8000", None, true),
            ("app.example.com:8000", None, true),
            ("evil.example", None, false),
            ("localhost.evil.example:8000", None, false),
            ("evillocalhost.example", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("", None, false),
            ("localhost", Some("http://localhost:3000"), true),
            ("localhost", Some("http://files.localhost:3000"), true),
            ("localhost", Some("http://127.0.0.1:3000"), true),
            ("localhost", Some("http://[::1]:3000"), true),
            ("localhost", Some("https://App.example.com"), true),
            ("localhost", Some("http://app.example.com"), false),
            ("localhost", Some("https://evil.example"), false),
            ("localhost", Some("http://localhost.evil.example"), false),
            ("localhost", Some("http://192.168.1.7:3000"), false),
            ("localhost", Some("null"), false),
            ("localhost", Some(""), false),
        ] {
            assert_eq!(
                is_from_trusted_page(Some(host), origin.into_iter(), &listed),
                expected,
                "{host} {origin:?}"
            );
        }
        assert!(!is_from_trusted_page(None, std::iter::empty(), &listed));
        let origins = ["http://localhost", "https://evil.example"];
        assert!(!is_from_trusted_page(Some("localhost"), origins.into_iter(), &listed));
        assert!(!is_from_trusted_page(Some("a.example"), std::iter::empty(), &CorsOrigins::Any));
    }
}
