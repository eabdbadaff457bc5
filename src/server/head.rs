//! A request's head: pure parsing, and the rules of framing (RFC 9112, 6; contract, 8).

use std::net::SocketAddr;

use super::MAX_HEADERS;
use crate::error::Error;

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
}

/// A request without its body.
pub struct Head {
    /// As handlers see it.
    pub request: rouille::Request,
    /// How the body ends.
    pub framing: Framing,
    /// `Content-Length`, where there is one.
    pub announced: Option<u64>,
    /// The client waits for `100 Continue`.
    pub expects_continue: bool,
    /// The connection may serve another request.
    pub keeps_open: bool,
    /// HTTP/1.0.
    pub is_old: bool,
}

/// What several headers together say about the connection and the body.
#[derive(Default)]
struct Said {
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    expects_else: bool,
}

/// Parses a whole head, its empty line included.
pub fn parse(bytes: &[u8], peer: SocketAddr) -> Result<Head, Error> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut raw = httparse::Request::new(&mut headers);
    match raw.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Error::HeadersTooLarge),
        Err(httparse::Error::Version) if names_a_version(bytes) => {
            return Err(Error::VersionNotSupported);
        }
        _ => return Err(Error::BadRequest),
    }
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Err(Error::BadRequest);
    };
    let target = origin_form(target).ok_or(Error::BadRequest)?;
    let mut said = Said::default();
    let mut list = Vec::with_capacity(raw.headers.len());
    for header in raw.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| Error::BadRequest)?;
        said.note(header.name, value.trim_matches([' ', '\t']))?;
        list.push((header.name.to_owned(), value.to_owned()));
    }
    let is_old = version == 0;
    said.check(is_old)?;
    let framing = match said.length {
        Some(length) => Framing::Length(length),
        None if said.chunked => Framing::Chunked,
        None => Framing::Length(0),
    };
    Ok(Head {
        request: rouille::Request::fake_http_from(peer, method, target, list, Vec::new()),
        framing,
        announced: said.length,
        expects_continue: said.expects_continue && !is_old && framing != Framing::Length(0),
        keeps_open: !said.close && (!is_old || said.keep_alive),
        is_old,
    })
}

impl Said {
    fn note(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            self.hosts += 1;
        } else if is("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            // More than fits is more than any endpoint allows.
            let length = value.parse().unwrap_or(u64::MAX);
            if !digits || self.length.replace(length).is_some() {
                return Err(Error::BadRequest);
            }
        } else if is("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case("chunked") {
                return Err(Error::BadRequest);
            }
            self.chunked = true;
        } else if is("connection") {
            for option in value.split(',').map(str::trim) {
                self.close |= option.eq_ignore_ascii_case("close");
                self.keep_alive |= option.eq_ignore_ascii_case("keep-alive");
            }
        } else if is("expect") {
            let is_known = value.eq_ignore_ascii_case("100-continue");
            self.expects_continue |= is_known;
            self.expects_else |= !is_known;
        }
        Ok(())
    }

    fn check(&self, is_old: bool) -> Result<(), Error> {
        let hosts_most = self.hosts <= 1 && (is_old || self.hosts == 1);
        let one_framing = !self.chunked || (self.length.is_none() && !is_old);
        if !hosts_most || !one_framing {
            return Err(Error::BadRequest);
        }
        if self.expects_else {
            return Err(Error::ExpectationFailed);
        }
        Ok(())
    }
}

/// The path and query of a request target. The absolute form names them after a host, which is the
/// client's business (RFC 9112, 3.2.2).
fn origin_form(target: &str) -> Option<&str> {
    if !target.is_ascii() {
        return None;
    }
    if target.starts_with('/') || target == "*" {
        return Some(target);
    }
    let (scheme, rest) = target.split_once("://")?;
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let path = rest.find('/').map(|at| &rest[at..])?;
    known.then_some(path)
}

/// Whether the request line ends with a version at all.
fn names_a_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next();
    let word = line.and_then(|line| line.rsplit(|byte| *byte == b' ').next());
    word.is_some_and(|word| word.starts_with(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            4 => Just("GET / HTTP/1.1".to_owned()),
            1 => "(POST|HEAD|get|\\*) (/[a-z?%]{0,9}|\\*|http://x/y|x:1) HTTP/1\\.[01]",
            1 => "[ -~]{0,20} HTTP/[0-9]\\.[0-9]",
            1 => ".{0,30}",
        ];
        let header = prop_oneof![
            2 => Just("Host: x".to_owned()),
            2 => "(Content-Length|content-length): ?[0-9]{0,22}[ ,+]?[0-9]?",
            2 => "Transfer-Encoding: ?(chunked|CHUNKED|gzip|chunked, chunked|)",
            1 => "(Expect|Connection): (100-continue|close|keep-alive|x)",
            1 => "[A-Za-z-]{1,10}:[ \t]?[ -~é\u{1}\r\n]{0,10}",
            1 => ".{0,20}",
        ];
        let end = prop_oneof![8 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")];
        let lines = proptest::collection::vec((header, end), 0..6);
        (line, lines, proptest::collection::vec(any::<u8>(), 0..3)).prop_map(
            |(line, lines, noise)| {
                let mut bytes = format!("{line}\r\n").into_bytes();
                for (header, end) in lines {
                    bytes.extend_from_slice(header.as_bytes());
                    bytes.extend_from_slice(end.as_bytes());
                }
                bytes.extend_from_slice(&noise);
                bytes.extend_from_slice(b"\r\n");
                bytes
            },
        )
    }

    #[test]
    fn what_is_accepted_is_framed_as_the_crate_does() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        crate::server::repeat(&head(), |bytes| {
            let Ok(head) = parse(&bytes, peer) else {
                return Ok(());
            };
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut raw = httparse::Request::new(&mut headers);
            prop_assert_eq!(raw.parse(&bytes), Ok(httparse::Status::Complete(bytes.len())));
            let seen: Vec<_> = head.request.headers().collect();
            let same = raw.headers.iter().map(|h| (h.name, h.value));
            prop_assert!(same.eq(seen.iter().map(|(name, value)| (*name, value.as_bytes()))));
            let named = |name: &str| {
                let matching = seen.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name));
                matching.map(|(_, value)| value.trim()).collect::<Vec<_>>()
            };
            let (lengths, codings) = (named("Content-Length"), named("Transfer-Encoding"));
            prop_assert!(lengths.len() + codings.len() <= 1);
            match head.framing {
                Framing::Chunked => prop_assert!(codings[0].eq_ignore_ascii_case("chunked")),
                Framing::Length(length) => prop_assert!(
                    codings.is_empty()
                        && lengths.iter().all(|l| l.parse().unwrap_or(u64::MAX) == length)
                ),
            }
            Ok(())
        });
    }
}
