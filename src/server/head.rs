//! Parsing of a request head, and the rules that decide where its body ends (RFC 9112, section 6). If two readings
//! are possible the head is refused, because a proxy in front of this server may choose the other one.

use std::borrow::Cow;
use std::net::{Ipv6Addr, SocketAddr};

use super::limits::MAX_HEADERS;
use crate::error::Error;

/// A request without its body.
pub struct RequestHead {
    /// The method, target and headers, as handlers see them.
    pub request: rouille::Request,
    /// The body is sent in chunks, of which the last one is marked. Otherwise it has the length that `Content-Length`
    /// says, or there is none.
    pub is_chunked: bool,
    /// The value of `Content-Length`, if there is one.
    pub content_length: Option<u64>,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The client allows another request on this connection.
    pub keep_alive: bool,
    /// The version is HTTP/1.0, not HTTP/1.1.
    pub is_http_1_0: bool,
}

/// The headers that are about the connection and the framing of the body.
#[derive(Default)]
struct ProtocolHeaders {
    hosts: usize,
    has_empty_host: bool,
    has_authorization: bool,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    has_unknown_expectation: bool,
}

impl RequestHead {
    /// Parses a complete head, including its empty line, that `peer` has sent. Errors are `BadRequest`,
    /// `SecondAuthorization`, `HeadersTooLarge`, `VersionNotSupported` and `ExpectationFailed`.
    pub fn parse(bytes: &[u8], peer: SocketAddr) -> Result<RequestHead, Error> {
        let mut header_slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut raw = httparse::Request::new(&mut header_slots);
        match raw.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Error::HeadersTooLarge),
            Err(httparse::Error::Version) if has_version(bytes) => {
                return Err(Error::VersionNotSupported);
            }
            _ => return Err(Error::BadRequest),
        }
        let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version)
        else {
            return Err(Error::BadRequest);
        };
        let target = RequestTarget::parse(target).ok_or(Error::BadRequest)?;
        let (headers, protocol) = read_headers(raw.headers)?;
        let is_http_1_0 = version == 0;
        protocol.check(is_http_1_0, target.has_authority)?;
        let has_body = protocol.chunked || protocol.content_length.unwrap_or(0) > 0;
        Ok(RequestHead {
            // Despite its name, this is how a `rouille::Request` is made without rouille's own server.
            request: rouille::Request::fake_http_from(
                peer,
                method,
                target.path_and_query,
                headers,
                Vec::new(),
            ),
            is_chunked: protocol.chunked,
            content_length: protocol.content_length,
            expects_continue: protocol.expects_continue && !is_http_1_0 && has_body,
            keep_alive: !protocol.close && (!is_http_1_0 || protocol.keep_alive),
            is_http_1_0,
        })
    }
}

/// Returns all headers as handlers see them, and what they say about the protocol. Bytes above 0x7F are opaque
/// (RFC 9110, 5.5): what is not UTF-8 is replaced by U+FFFD, so that the header is not as if it were absent, and
/// matches nothing that this service has made.
fn read_headers(
    raw: &[httparse::Header],
) -> Result<(Vec<(String, String)>, ProtocolHeaders), Error> {
    let mut protocol = ProtocolHeaders::default();
    let mut headers = Vec::with_capacity(raw.len());
    for header in raw {
        let value = String::from_utf8_lossy(header.value).into_owned();
        protocol.add(header.name, value.trim_matches([' ', '\t']))?;
        headers.push((header.name.to_owned(), value));
    }
    Ok((headers, protocol))
}

impl ProtocolHeaders {
    /// Notes one header. A second `Authorization`, `Content-Length` or `Transfer-Encoding`, or a value that is not
    /// understood, is an error.
    fn add(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            self.hosts += 1;
            self.has_empty_host = value.is_empty();
            if !value.is_empty() && !is_host_and_port(value) {
                return Err(Error::BadRequest);
            }
        } else if is("authorization") {
            if std::mem::replace(&mut self.has_authorization, true) {
                return Err(Error::SecondAuthorization);
            }
        } else if is("content-length") {
            let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            // A number that does not fit 64 bits is more than any endpoint accepts, and so is the largest that fits.
            let length = value.parse().unwrap_or(u64::MAX);
            if !is_number || self.content_length.replace(length).is_some() {
                return Err(Error::BadRequest);
            }
        } else if is("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case("chunked") {
                return Err(Error::BadRequest);
            }
            self.chunked = true;
        } else if is("connection") {
            let options = value.is_ascii().then(|| value.split(',')).ok_or(Error::BadRequest)?;
            for option in options.map(str::trim) {
                self.close |= option.eq_ignore_ascii_case("close");
                self.keep_alive |= option.eq_ignore_ascii_case("keep-alive");
            }
        } else if is("expect") {
            let is_known = value.eq_ignore_ascii_case("100-continue");
            self.expects_continue |= is_known;
            self.has_unknown_expectation |= !is_known;
        }
        Ok(())
    }

    /// Checks the headers against each other: HTTP/1.1 requires exactly one `Host`, which is empty only if the
    /// target names no authority, and only one header may frame the body. HTTP/1.0 has no chunked coding.
    fn check(&self, is_http_1_0: bool, target_has_authority: bool) -> Result<(), Error> {
        let hosts_valid = (self.hosts == 1 || (self.hosts == 0 && is_http_1_0))
            && !(self.has_empty_host && target_has_authority);
        let framing_valid = !self.chunked || (self.content_length.is_none() && !is_http_1_0);
        if !hosts_valid || !framing_valid {
            return Err(Error::BadRequest);
        }
        if self.has_unknown_expectation {
            return Err(Error::ExpectationFailed);
        }
        Ok(())
    }
}

/// The value of the first header `name` in a complete head that [`RequestHead::parse`] has refused. `None` if it is
/// not there or not UTF-8.
pub fn find_header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii_end).find_map(|line| {
        let (key, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        key.eq_ignore_ascii_case(name.as_bytes()).then(|| std::str::from_utf8(&value[1..]).ok())?
    })
}

/// Whether the request line has an HTTP version after its method and its target. `httparse` reports any other third
/// word as an unknown version, such as the rest of a target with a blank in it.
fn has_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next();
    let word = line.and_then(|line| line.splitn(3, |byte| *byte == b' ').nth(2));
    word.is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// A request target (RFC 9112, section 3.2), taken apart.
struct RequestTarget<'a> {
    /// The path and the query; the path begins with a slash, unless the target is `*`.
    path_and_query: Cow<'a, str>,
    /// The target is in the absolute form, which names a host. That host is ignored, as the one in `Host` is: this
    /// server serves one site.
    has_authority: bool,
}

impl RequestTarget<'_> {
    /// Parses a target. `None` if it is malformed or has no path, such as the target of `CONNECT`. A fragment is
    /// malformed: clients never send one, and an intermediary might or might not take it for a part of the path.
    fn parse(target: &str) -> Option<RequestTarget<'_>> {
        if !target.is_ascii() || target.contains('#') {
            return None;
        }
        if target.starts_with('/') || target == "*" {
            return Some(RequestTarget { path_and_query: target.into(), has_authority: false });
        }
        let (scheme, rest) = target.split_once("://")?;
        let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if !is_http || !is_host_and_port(authority) {
            return None;
        }
        let path_and_query =
            if rest.starts_with('/') { rest.into() } else { format!("/{rest}").into() };
        Some(RequestTarget { path_and_query, has_authority: true })
    }
}

/// Whether `text` is `uri-host [":" port]` (RFC 3986, section 3.2): a registered name that is not empty, an IPv4
/// address or an IPv6 address in brackets, and perhaps a port. In anything else, such as `a, b` or `a/b`, two programs
/// may see two different hosts.
fn is_host_and_port(text: &str) -> bool {
    let (is_host, rest) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, rest))) => (address.parse::<Ipv6Addr>().is_ok(), rest),
        Some(None) => return false,
        None => {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (!name.is_empty() && is_registered_name(name), rest)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// Whether `name` consists of unreserved characters, delimiters within a component, and percent-encoded bytes. IPv4
/// addresses do.
fn is_registered_name(name: &str) -> bool {
    let mut parts = name.split('%');
    let is_plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte))
    };
    parts.next().is_some_and(is_plain)
        && parts.all(|part| {
            part.split_at_checked(2).is_some_and(|(digits, rest)| {
                digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && is_plain(rest)
            })
        })
}

#[cfg(test)]
mod tests {
    use memchr::memmem;

    use super::super::client_stream::find_head_end;
    use super::*;

    /// Bytes are a head up to the first empty line, however they arrive, if all lines up to there end with a carriage
    /// return and a line feed. Of an accepted head nothing is lost, and its body is framed as `httparse` reads it.
    fn check_head(bytes: &[u8]) {
        let end = memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4);
        let lines = &bytes[..end.unwrap_or(bytes.len())];
        let count = |mark: &[u8]| memmem::find_iter(lines, mark).count();
        let expected = (count(b"\n") == count(b"\r\n")).then_some(end);
        assert_eq!(find_head_end(bytes, &mut 0).ok(), expected);
        let mut scanned = 0;
        let mut arriving = (0..=bytes.len()).map(|n| find_head_end(&bytes[..n], &mut scanned).ok());
        assert_eq!(arriving.find(|found| *found != Some(None)).unwrap_or(Some(None)), expected);
        if expected.flatten().is_none() {
            return;
        }
        // An empty line before a head is dropped.
        let bytes = lines.strip_prefix(b"\r\n").unwrap_or(lines);
        let Ok(head) = RequestHead::parse(bytes, SocketAddr::from(([127, 0, 0, 1], 1))) else {
            return;
        };
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut raw = httparse::Request::new(&mut headers);
        assert_eq!(raw.parse(bytes), Ok(httparse::Status::Complete(bytes.len())));
        let seen: Vec<_> = head.request.headers().collect();
        let same = raw.headers.iter().map(|h| (h.name, String::from_utf8_lossy(h.value)));
        assert!(same.eq(seen.iter().map(|(name, value)| (*name, (*value).into()))));
        let named = |name: &str| {
            let matching = seen.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name));
            matching.map(|(_, value)| value.trim()).collect::<Vec<_>>()
        };
        let (lengths, codings) = (named("Content-Length"), named("Transfer-Encoding"));
        assert!(lengths.len() + codings.len() <= 1);
        let length = head.content_length.unwrap_or(0);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match head.is_chunked {
            true => {
                assert!(!head.is_http_1_0 && codings[0].eq_ignore_ascii_case("chunked"));
            }
            false => assert!(
                codings.is_empty()
                    && lengths
                        .iter()
                        .all(|l| is_number(l) && l.parse().unwrap_or(u64::MAX) == length)
            ),
        }
        let hosts = named("Host");
        assert!(hosts.len() == 1 || (hosts.is_empty() && head.is_http_1_0));
        let url = head.request.raw_url();
        assert!((url.starts_with('/') || url == "*") && !url.contains(['#', ' ']), "{url}");
    }

    #[test]
    fn fuzz_heads() {
        fuzz::check("head", check_head);
    }
}
