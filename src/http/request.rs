//! A request as handlers see it: the head, and a body that is read when they ask for it.

use std::cell::RefCell;
use std::io::{self, Read};

use serde_json::{Map, Value};

use super::fields::Fields;
use super::query::Query;
use crate::error::{Error, FieldError, Place};
use crate::model::fields as rules;

/// Longest JSON or form body, bytes (contract, 3).
pub const BODY_MOST: u64 = 128 * 1024;

/// The body as it comes from the client.
pub struct Body<'a> {
    /// Gives the body's bytes.
    pub reader: Box<dyn Read + 'a>,
    /// `Content-Length`, where there is one.
    pub announced: Option<u64>,
}

/// One request.
pub struct Request<'a> {
    head: &'a rouille::Request,
    body: RefCell<Body<'a>>,
}

impl<'a> Request<'a> {
    /// A request of the given head and body.
    pub fn new(head: &'a rouille::Request, body: Body<'a>) -> Request<'a> {
        Request {
            head,
            body: RefCell::new(body),
        }
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
        let all: Vec<_> = self
            .head
            .headers()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .collect();
        all.into_iter().map(|(_, value)| value)
    }

    /// The other end of the connection.
    pub fn peer(&self) -> std::net::IpAddr {
        self.head.remote_addr().ip()
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
                pairs
                    .map(|(k, v)| (k.into_owned(), Value::String(v.into_owned())))
                    .collect(),
                read,
            )
        } else {
            Fields::read(parse_json(&text)?, read)
        }
    }

    fn text(&self) -> Result<String, Error> {
        String::from_utf8(self.bytes(BODY_MOST)?).map_err(|_| bad_body(rules::not_json()))
    }

    /// The whole body, at most `most` bytes. A body announced longer is refused before it is read.
    fn bytes(&self, most: u64) -> Result<Vec<u8>, Error> {
        let body = &mut *self.body.borrow_mut();
        let announced = body.announced;
        if announced.is_some_and(|length| length > most) {
            return Err(Error::BodyTooLarge);
        }
        let mut bytes = Vec::with_capacity(announced.unwrap_or(0) as usize);
        (&mut body.reader)
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > most {
            return Err(Error::BodyTooLarge);
        }
        // The stock server reports a client that hung up as a plain end.
        if announced.is_some_and(|length| length != bytes.len() as u64) {
            return Err(Error::BodyCutShort);
        }
        Ok(bytes)
    }
}

fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::BodyTooSlow,
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
    Error::Invalid(vec![FieldError {
        place: Place::Body,
        field: None,
        problem,
    }])
}
