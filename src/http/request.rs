//! A request as handlers see it: the head, and a body that is read when they ask for it.

use std::cell::RefCell;
use std::io::{self, Read};

use serde_json::{Map, Value};

use super::body::Body;
use super::fields::Fields;
use super::multipart::Multipart;
use super::query::Query;
use crate::error::{Error, FieldError, Place};
use crate::model::rules;

/// Longest JSON or form body, bytes (contract, 3).
pub const MAX_BODY: u64 = 128 * 1024;

/// Gives some more of a body, zero bytes at its end.
pub type Source<'a> = Box<dyn FnMut(&mut [u8]) -> Result<usize, Error> + 'a>;

/// One request.
pub struct Request<'a> {
    head: &'a rouille::Request,
    body: RefCell<Body<'a>>,
}

impl<'a> Request<'a> {
    /// A request of the given head and body.
    pub fn new(head: &'a rouille::Request, body: Body<'a>) -> Request<'a> {
        Request { head, body: RefCell::new(body) }
    }

    /// The method, as sent.
    pub fn method(&self) -> &str {
        self.head.method()
    }

    /// The path, still percent-encoded.
    pub fn path(&self) -> &str {
        self.head.raw_url().split('?').next().unwrap_or_default()
    }

    /// Hands the query's parameters to `read`. All bad ones are answered at once.
    pub fn query<T>(&self, read: impl FnOnce(&mut Query) -> T) -> Result<T, Error> {
        Query::read(self.head.raw_query_string(), read)
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// All headers of that name.
    pub fn headers(&self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        let all: Vec<_> =
            self.head.headers().filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
        all.into_iter().map(|(_, value)| value)
    }

    /// The other end of the connection.
    pub fn peer(&self) -> std::net::IpAddr {
        self.head.remote_addr().ip()
    }

    /// Whether it comes from this host and was forwarded for nobody.
    pub fn is_local(&self) -> bool {
        let forwarded = ["X-Forwarded-For", "Forwarded"];
        self.peer().to_canonical().is_loopback()
            && forwarded.iter().all(|name| self.header(name).is_none())
    }

    /// Reads a JSON object and hands its fields to `read`. All bad fields are answered at once.
    /// An empty body reads as an object without fields.
    pub fn json<T>(&self, read: impl FnOnce(&mut Fields) -> T) -> Result<T, Error> {
        Fields::read(parse_json(&self.text()?)?, read)
    }

    /// Like [`Request::json`], and takes an HTML form as well where the body is not JSON and the
    /// `Content-Type` says so (contract, 7, login).
    pub fn json_or_form<T>(&self, read: impl FnOnce(&mut Fields) -> T) -> Result<T, Error> {
        let text = self.text()?;
        let declared = self.header("Content-Type").unwrap_or_default();
        let essence = declared.split(';').next().unwrap_or_default().trim();
        let is_form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        if is_form && !text.trim_start().starts_with('{') {
            let pairs = form_urlencoded::parse(text.as_bytes());
            Fields::read(
                pairs.map(|(k, v)| (k.into_owned(), Value::String(v.into_owned()))).collect(),
                read,
            )
        } else {
            Fields::read(parse_json(&text)?, read)
        }
    }

    fn text(&self) -> Result<String, Error> {
        String::from_utf8(self.bytes(MAX_BODY)?).map_err(|_| bad_body(rules::not_json()))
    }

    /// The body in parts, at most `most` bytes; `over` is what is answered to a longer one.
    pub fn multipart(
        &self,
        most: u64,
        over: impl Fn() -> Error + 'static,
    ) -> Result<Multipart<'_>, Error> {
        let source = self.source(most, over)?;
        Multipart::new(source, self.header("Content-Type").unwrap_or_default())
    }

    /// The whole body, at most `most` bytes.
    fn bytes(&self, most: u64) -> Result<Vec<u8>, Error> {
        let mut source = self.source(most, || Error::BodyTooLarge)?;
        let mut bytes = Vec::new();
        let mut chunk = [0; 8192];
        loop {
            match source(&mut chunk)? {
                0 => return Ok(bytes),
                length => bytes.extend_from_slice(&chunk[..length]),
            }
        }
    }

    /// The body as it comes, at most `most` bytes. One announced longer is refused before it is read,
    /// one that ends before its announced length at that end.
    fn source(&self, most: u64, over: impl Fn() -> Error + 'static) -> Result<Source<'_>, Error> {
        let mut body = self.body.borrow_mut();
        let announced = body.announced;
        if announced.is_some_and(|length| length > most) {
            return Err(over());
        }
        let mut received = 0;
        Ok(Box::new(move |into| {
            let length = read(&mut *body.reader, into)?;
            received += length as u64;
            if received > most {
                return Err(over());
            }
            // The stock server reports a client that hung up as a plain end.
            if length == 0 && announced.is_some_and(|length| length != received) {
                return Err(Error::BodyCutShort);
            }
            Ok(length)
        }))
    }
}

fn read(reader: &mut dyn Read, into: &mut [u8]) -> Result<usize, Error> {
    loop {
        match reader.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome.map_err(unreadable),
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::BodyTooSlow,
        io::ErrorKind::InvalidData => Error::BodyMalformed,
        _ => Error::BodyCutShort,
    }
}

fn parse_json(text: &str) -> Result<Map<String, Value>, Error> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // The parser refuses nesting deeper than 127.
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(bad_body(rules::not_an_object())),
        Err(_) => Err(bad_body(rules::not_json())),
    }
}

fn bad_body(problem: crate::error::Problem) -> Error {
    Error::Invalid(vec![FieldError { place: Place::Body, field: None, problem }])
}
