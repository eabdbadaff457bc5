//! A request as handlers see it: its head, and a body that is read when they ask for it.

use std::net::IpAddr;

use super::body::Body;
use super::multipart::Multipart;
use super::params::Params;
use crate::error::{Error, FieldError, Place};
use crate::model::rules;

/// Longest JSON or form body, bytes.
const MAX_TEXT_BODY: u64 = 128 * 1024;

/// One request.
pub struct Request<'a> {
    head: &'a rouille::Request,
    body: Body<'a>,
}

impl<'a> Request<'a> {
    pub fn new(head: &'a rouille::Request, body: Body<'a>) -> Request<'a> {
        Request { head, body }
    }

    /// The method as sent. Methods are case-sensitive (RFC 9110, 9.1).
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

    /// All headers of that name, in the order they were sent.
    pub fn headers(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let named: Vec<_> =
            self.head.headers().filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
        named.into_iter().map(|(_, value)| value)
    }

    /// The token of the `Authorization` header, which must be `Bearer` and one word (RFC 6750, 2.1). The
    /// scheme's case does not matter.
    pub fn bearer_token(&self) -> Result<&'a str, Error> {
        let mut words = self.header("Authorization").unwrap_or_default().split_whitespace();
        let scheme = words.next().ok_or(Error::AuthenticationRequired)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Error::InvalidScheme);
        }
        match (words.next(), words.next()) {
            (Some(token), None) => Ok(token),
            _ => Err(Error::InvalidAuthorization),
        }
    }

    /// The address at the other end of the connection: the client's, or that of a proxy.
    pub fn peer(&self) -> IpAddr {
        self.head.remote_addr().ip()
    }

    /// Whether the request comes from this host and no proxy says that it forwards for somebody else.
    pub fn is_local(&self) -> bool {
        let forwarding = ["X-Forwarded-For", "Forwarded"];
        self.peer().to_canonical().is_loopback()
            && forwarding.iter().all(|name| self.header(name).is_none())
    }

    /// Reads the query's parameters.
    pub fn query<T>(&self, read: impl FnOnce(&mut Params) -> T) -> Result<T, Error> {
        Params::from_urlencoded(Place::Query, self.head.raw_query_string()).read(read)
    }

    /// Reads the fields of a JSON body, whatever its declared type.
    pub fn json<T>(&mut self, read: impl FnOnce(&mut Params) -> T) -> Result<T, Error> {
        Params::from_json(&self.text()?)?.read(read)
    }

    /// Like [`Request::json`], and takes an HTML form as well, where the declared type says so and the body
    /// does not begin like a JSON object: the password form of OAuth 2.0 (RFC 6749, 4.3.2) is one.
    pub fn json_or_form<T>(&mut self, read: impl FnOnce(&mut Params) -> T) -> Result<T, Error> {
        let text = self.text()?;
        let declared = self.header("Content-Type").unwrap_or_default();
        let essence = declared.split(';').next().unwrap_or_default().trim();
        let is_form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        if is_form && !text.trim_start().starts_with('{') {
            Params::from_urlencoded(Place::Body, &text).read(read)
        } else {
            Params::from_json(&text)?.read(read)
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let text = self.body.read_text(MAX_TEXT_BODY)?;
        text.ok_or_else(|| FieldError::of_body(rules::not_json()))
    }

    /// The parts of a `multipart/form-data` body of at most `limit` bytes.
    pub fn multipart(&mut self, limit: u64) -> Result<Multipart<'_, 'a>, Error> {
        self.body.set_limit(limit)?;
        let content_type = self.head.header("Content-Type").unwrap_or_default();
        Multipart::new(&mut self.body, content_type)
    }
}
