//! Decides whether a browser's request comes from a trusted page. What a service of a developer allows to this
//! host alone must not be open to every web page that a browser on this host shows.

use std::net::IpAddr;

use crate::config::{CorsOrigins, is_loopback};

/// Whether no foreign web page can have sent a request with this `Host` and these `Origin` headers.
///
/// A page can make its own name resolve to a loopback address, and is then of the same origin as this service (DNS
/// rebinding). So the host must be one that no stranger can register: an address, `localhost`, a name below it, one
/// without a dot as container networks have them, or the host of a listed origin. A page of another origin can send
/// requests without reading the answers (cross-site request forgery). Browsers name its origin, which must be on
/// this host or listed. `*` lists none.
pub fn is_from_trusted_page<'a>(
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
