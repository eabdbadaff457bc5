//! The types of settings that are neither plain numbers or texts nor one word of a list, and how they are parsed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// A value that must not be printed: its `Debug` form does not contain it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value itself. The name makes each use easy to find.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The cost of a password hash (RFC 7914). One hash takes `128 * r * 2^log_n` bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScryptCost {
    /// Binary logarithm of the cost factor N.
    pub log_n: u8,
    /// Block size.
    pub r: u32,
    /// Parallelization factor; here the passes run one after the other.
    pub p: u32,
}

impl ScryptCost {
    /// The work of a hash: how many blocks of 128 bytes it fills in all passes. Its time is proportional to that.
    pub fn work(self) -> u64 {
        (u64::from(self.r) << self.log_n).saturating_mul(self.p.into())
    }

    /// The bytes that a hash takes.
    pub fn memory(self) -> u64 {
        (128 * u64::from(self.r)) << self.log_n
    }

    /// Whether a hash takes at least the work that OWASP recommends as a minimum (Password Storage Cheat Sheet), such
    /// as N = 2^17, r = 8, p = 1 or N = 2^14, r = 8, p = 5.
    pub fn is_enough(self) -> bool {
        self.log_n >= 13 && self.work() >= 655_360
    }
}

impl FromStr for ScryptCost {
    type Err = ();

    /// Parses `log_n,r,p`. A hash may take at most a gibibyte (2^30 bytes) of memory.
    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u32>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        let &[log_n @ 1..=24, r @ 1..=32, p @ 1..=64] = numbers.map_err(|_| ())?.as_slice() else {
            return Err(());
        };
        let cost = ScryptCost { log_n: log_n as u8, r, p };
        if cost.memory() > 1 << 30 { Err(()) } else { Ok(cost) }
    }
}

impl fmt::Display for ScryptCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.log_n, self.r, self.p)
    }
}

/// The origins whose web pages may use the API from a browser (Fetch standard, CORS protocol).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// No origin: the CORS protocol is switched off.
    Off,
    Any,
    /// These, as browsers write them: in lower case and without the default port of their scheme.
    List(Vec<String>),
}

impl CorsOrigins {
    /// Parses `*` or comma-separated origins.
    pub fn parse(text: &str) -> Option<CorsOrigins> {
        let origins: Vec<&str> = comma_separated(text).collect();
        match origins.as_slice() {
            [] => Some(CorsOrigins::Off),
            ["*"] => Some(CorsOrigins::Any),
            origins => {
                let origins =
                    origins.iter().map(|text| Origin::parse(text).map(Origin::serialized));
                origins.collect::<Option<_>>().map(CorsOrigins::List)
            }
        }
    }
}

/// `scheme://host[:port]`. Browsers send origins without a path, so one with a path, or even a trailing slash, would
/// never match.
pub struct Origin<'a> {
    pub scheme: &'a str,
    /// An IPv6 address has brackets.
    pub host: &'a str,
    pub port: Option<&'a str>,
}

impl Origin<'_> {
    pub fn parse(text: &str) -> Option<Origin<'_>> {
        let (scheme, authority) = text.split_once("://")?;
        let is_of_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        let is_of_authority = |b: u8| b.is_ascii_graphic() && !b"/?#*,".contains(&b);
        let is_origin = scheme.bytes().all(is_of_scheme) && authority.bytes().all(is_of_authority);
        if !is_origin || scheme.is_empty() || authority.is_empty() {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':') {
            // In `[::1]` the last colon is a part of the address.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        Some(Origin { scheme, host, port })
    }

    pub fn is_web(&self) -> bool {
        ["http", "https"].contains(&self.scheme)
    }

    /// The host and the port, without the port that http and https have by default.
    pub fn authority(&self) -> String {
        match (self.scheme, self.port) {
            (_, None) | ("http", Some("80")) | ("https", Some("443")) => self.host.to_owned(),
            (_, Some(port)) => format!("{}:{port}", self.host),
        }
    }

    /// The origin as browsers write it in `Origin` (URL standard, serialization of an origin).
    fn serialized(self) -> String {
        let (scheme, host) = (self.scheme.to_ascii_lowercase(), self.host.to_ascii_lowercase());
        let authority = Origin { scheme: &scheme, host: &host, ..self }.authority();
        format!("{scheme}://{authority}")
    }
}

/// The media types of files that may be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadTypes(Vec<String>);

impl UploadTypes {
    /// `types` are lower case and without parameters, such as `image/png`.
    pub fn new(types: &[&str]) -> UploadTypes {
        UploadTypes(types.iter().map(|&name| name.to_owned()).collect())
    }

    /// The types and patterns, in lower case and without parameters.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether files of all types are accepted, also of unknown ones.
    pub fn take_any(&self) -> bool {
        self.0.iter().any(|name| name == ANY || name == "*/*")
    }

    /// Whether a pattern, such as `image/*`, takes the type.
    pub fn have_pattern_of(&self, name: &str) -> bool {
        let kind = name.split_once('/').map(|(kind, _)| kind);
        let is_pattern = |listed: &String| kind == listed.strip_suffix("/*");
        self.take_any() || kind.is_some() && self.0.iter().any(is_pattern)
    }
}

/// In place of a list: every type.
const ANY: &str = "any";

impl FromStr for UploadTypes {
    type Err = ();

    /// Parses comma-separated types and patterns of a kind of types. There must be at least one; what takes all types
    /// stands alone.
    fn from_str(text: &str) -> Result<Self, ()> {
        let types = UploadTypes(comma_separated(text).map(str::to_ascii_lowercase).collect());
        let is_valid = |name: &str| {
            is_media_type(name) && !name.strip_suffix("/*").unwrap_or(name).contains('*')
        };
        let all_valid = !types.0.is_empty() && types.iter().all(is_valid);
        (all_valid || types.take_any() && types.0.len() == 1).then_some(types).ok_or(())
    }
}

impl fmt::Display for UploadTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Whether `text` is `type/subtype`, each a token (RFC 9110, 5.6.2), and fits the 100 characters of the database
/// column.
pub fn is_media_type(text: &str) -> bool {
    text.len() <= 100
        && text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Whether `text` is a token (RFC 9110, 5.6.2), as names of headers and methods are.
pub fn is_token(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Parses comma-separated IP addresses and CIDR blocks; an address is a block of one. IPv4 addresses in the form of
/// IPv6 become plain ones, because clients' addresses are compared in that form. `None` if a part is neither.
pub fn networks(text: &str) -> Option<Vec<IpNet>> {
    let network = |part: &str| {
        let block = part.parse().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from))?;
        let bits = block.prefix_len().checked_sub(96);
        match (block.addr().to_canonical(), bits) {
            (address @ IpAddr::V4(_), Some(bits)) => IpNet::new(address, bits).ok(),
            _ => Some(block),
        }
    };
    comma_separated(text).map(network).collect()
}

/// Parses a number of bytes: digits, and after them perhaps one of the units `K`, `M`, `G` and `T`, which are powers of
/// 1024, also as in `KiB` and in lower case. `KB` is refused, because to some it means 1000 bytes.
pub fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Whether a name or an IP address (without brackets) is certain to mean this host. Other names may resolve to a
/// loopback address today and to another one tomorrow.
pub fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Parses a log level or, because `RUST_LOG` may be set for other programs too, comma-separated `target=level`
/// directives. Directives for other targets are ignored; without one for this program the level is `info`.
pub fn own_log_level(text: &str) -> Option<log::LevelFilter> {
    let mut level = log::LevelFilter::Info;
    for directive in text.split(',').map(str::trim) {
        let (target, word) = directive.split_once('=').unwrap_or(("cloakroom", directive));
        let parsed = word.parse().ok()?;
        if target == "cloakroom" {
            level = parsed;
        }
    }
    Some(level)
}

/// The parts of a comma-separated list, trimmed. Empty parts are left out.
pub fn comma_separated(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrypt_parameters_are_three_numbers_within_a_gibibyte() {
        assert_eq!("14,8,5".parse(), Ok(ScryptCost { log_n: 14, r: 8, p: 5 }));
        for bad in [
            "", "14", "14,8", "0,8,5", "14,0,5", "14,8,0", "14,8,5,1", "x,8,5", "24,32,1", "20,9,1",
        ] {
            assert_eq!(bad.parse::<ScryptCost>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(CorsOrigins::parse(""), Some(CorsOrigins::Off));
        assert_eq!(CorsOrigins::parse("*"), Some(CorsOrigins::Any));
        assert_eq!(
            CorsOrigins::parse("https://A.example, http://localhost:3000"),
            Some(CorsOrigins::List(vec![
                "https://a.example".into(),
                "http://localhost:3000".into()
            ]))
        );
        for (written, sent) in [
            ("https://a.example:443", "https://a.example"),
            ("HTTPS://A.example:443", "https://a.example"),
            ("http://a.example:80", "http://a.example"),
            ("https://[2001:db8::1]:443", "https://[2001:db8::1]"),
            ("https://a.example:80", "https://a.example:80"),
            ("http://a.example:443", "http://a.example:443"),
            ("https://a.example:8443", "https://a.example:8443"),
            ("http://[2001:db8::80]", "http://[2001:db8::80]"),
            ("app://a:443", "app://a:443"),
        ] {
            let expected = CorsOrigins::List(vec![sent.into()]);
            assert_eq!(CorsOrigins::parse(written), Some(expected), "{written}");
        }
        for bad in [
            "example.com",
            "https://a.example/",
            "https://a.example/app",
            "https://*.example",
            "*,https://a.example",
            "null",
            "https://a.example,null",
        ] {
            assert_eq!(CorsOrigins::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_size_is_a_number_of_bytes_or_of_binary_units() {
        for (text, bytes) in [
            ("10485760", 10 << 20),
            ("10M", 10 << 20),
            ("10 MiB", 10 << 20),
            ("1k", 1 << 10),
            ("2gib", 2 << 30),
            ("3T", 3 << 40),
            ("0", 0),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "M",
            "-1",
            "+1",
            "1.5M",
            "10MB",
            "10 M B",
            "1P",
            "1B",
            "16777216T",
            "99999999999999999999",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn the_log_level_is_the_one_for_this_program() {
        use log::LevelFilter::{Debug, Info, Off, Trace};
        for (text, level) in [
            ("off", Some(Off)),
            ("DEBUG", Some(Debug)),
            ("cloakroom=trace,tower=off", Some(Trace)),
            ("tower=debug", Some(Info)),
            ("loud", None),
            ("info,tower=loud", None),
        ] {
            assert_eq!(own_log_level(text), level, "{text}");
        }
    }

    #[test]
    fn networks_are_addresses_or_blocks_and_mapped_ones_are_ipv4() {
        for (text, expected) in [
            ("", vec![]),
            ("10.0.0.0/8, 192.0.2.1", vec!["10.0.0.0/8", "192.0.2.1/32"]),
            ("2001:db8::/32,::1", vec!["2001:db8::/32", "::1/128"]),
            ("::ffff:10.0.0.1,::ffff:10.0.0.0/104", vec!["10.0.0.1/32", "10.0.0.0/8"]),
            ("::ffff:0:0/96", vec!["0.0.0.0/0"]),
        ] {
            let found = networks(text).unwrap_or_default();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(networks("10.0.0.0/33"), None);
        assert_eq!(networks("localhost"), None);
    }
}
