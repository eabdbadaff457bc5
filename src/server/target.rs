//! The request target, and the host and port in it or in `Host` (RFC 9112, section 3.2; RFC 3986, section 3.2).

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// A request target, taken apart.
pub struct RequestTarget<'a> {
    /// The path and the query; the path begins with a slash, unless the target is `*`.
    pub path_and_query: Cow<'a, str>,
    /// The target is in the absolute form, which names a host. That host is ignored, as the one in `Host` is: this
    /// server serves one site.
    pub has_authority: bool,
}

impl RequestTarget<'_> {
    /// Parses a target. `None` if it is malformed or has no path, such as the target of `CONNECT`. A fragment is
    /// malformed: clients never send one, and an intermediary might or might not take it for a part of the path.
    pub fn parse(target: &str) -> Option<RequestTarget<'_>> {
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

/// Whether `text` is `uri-host [":" port]`: a registered name that is not empty, an IPv4 address or an IPv6 address in
/// brackets, and perhaps a port. In anything else, such as `a, b` or `a/b`, two programs may see two different hosts.
pub fn is_host_and_port(text: &str) -> bool {
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
