//! The types of settings that are not plain numbers or texts.

use std::fmt;
use std::str::FromStr;

/// A setting that holds one word of a closed list.
pub trait Choice: Copy + PartialEq + 'static {
    /// The words that users write and see, each with its value, in the order in which messages list them.
    const WORDS: &'static [(&'static str, Self)];
    /// Words of former versions. They are still accepted, but neither listed nor shown.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// The value of `word`, whose case matters. `None` if neither list has it.
    fn from_word(word: &str) -> Option<Self> {
        let mut all = Self::WORDS.iter().chain(Self::ALIASES);
        all.find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// The word that users see for this value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

/// Where the service runs, which decides how strict it is about its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// On a developer's machine. The defaults are convenient, and password reset tokens are logged.
    Development,
    /// On a public network. The service refuses to start with unsafe settings.
    Production,
}

impl Choice for Environment {
    const WORDS: &'static [(&'static str, Self)] =
        &[("development", Environment::Development), ("production", Environment::Production)];
}

/// Which HTTP server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpServer {
    /// The server of this program, which may face a public network.
    Builtin,
    /// The server of the `rouille` crate, for use behind a proxy.
    Rouille,
}

impl Choice for HttpServer {
    const WORDS: &'static [(&'static str, Self)] =
        &[("builtin", HttpServer::Builtin), ("rouille", HttpServer::Rouille)];
    const ALIASES: &'static [(&'static str, Self)] = &[("front", HttpServer::Builtin)];
}

/// Who may read `/metrics`. For everyone else the path does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    Off,
    /// Clients on this host, except for requests with a forwarding header, because those came through a proxy.
    Loopback,
    Any,
}

impl Choice for MetricsAccess {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("loopback", MetricsAccess::Loopback),
        ("off", MetricsAccess::Off),
        ("any", MetricsAccess::Any),
    ];
}

/// Something that is switched on or off.
impl Choice for bool {
    const WORDS: &'static [(&'static str, Self)] = &[("on", true), ("off", false)];
}

/// Which endpoints require `X-API-Key`, if keys are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyScope {
    /// The exports.
    Exports,
    /// Every endpoint below `/api/v1`.
    All,
}

impl Choice for ApiKeyScope {
    const WORDS: &'static [(&'static str, Self)] =
        &[("exports", ApiKeyScope::Exports), ("all", ApiKeyScope::All)];
}

/// The shape of the JSON body of error responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFormat {
    /// `{"detail": ..., "error_code": ...}`
    Detail,
    /// `{"error": {"code": ..., "message": ..., ...}}`
    Envelope,
}

impl Choice for ErrorFormat {
    const WORDS: &'static [(&'static str, Self)] =
        &[("detail", ErrorFormat::Detail), ("envelope", ErrorFormat::Envelope)];
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for log collectors.
    Json,
}

impl Choice for LogFormat {
    const WORDS: &'static [(&'static str, Self)] =
        &[("text", LogFormat::Text), ("json", LogFormat::Json)];
}

/// The algorithm that signs tokens: HMAC with SHA-256, SHA-384 or SHA-512 (RFC 7518, 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Hs256,
    Hs384,
    Hs512,
}

impl Choice for Algorithm {
    const WORDS: &'static [(&'static str, Self)] =
        &[("HS256", Algorithm::Hs256), ("HS384", Algorithm::Hs384), ("HS512", Algorithm::Hs512)];
}

impl Algorithm {
    /// The length of the hash in bytes. A key must not be shorter (RFC 7518, 3.2).
    pub fn min_secret_bytes(self) -> usize {
        match self {
            Algorithm::Hs256 => 32,
            Algorithm::Hs384 => 48,
            Algorithm::Hs512 => 64,
        }
    }
}

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
        let bytes = (128 * u64::from(r)) << log_n;
        if bytes > 1 << 30 { Err(()) } else { Ok(ScryptCost { log_n: log_n as u8, r, p }) }
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
    /// These, in lower case.
    List(Vec<String>),
}

impl FromStr for CorsOrigins {
    type Err = ();

    /// Parses `*` or comma-separated origins.
    fn from_str(text: &str) -> Result<Self, ()> {
        let origins: Vec<&str> = comma_separated(text).collect();
        match origins.as_slice() {
            [] => Ok(CorsOrigins::Off),
            ["*"] => Ok(CorsOrigins::Any),
            origins if origins.iter().all(|origin| is_origin(origin)) => Ok(CorsOrigins::List(
                origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
            )),
            _ => Err(()),
        }
    }
}

/// Whether `text` is `scheme://host[:port]`. Browsers send origins without a path, so one with a path, or even a
/// trailing slash, would never match.
pub fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_graphic() && !b"/?#*,".contains(&b))
    })
}

/// The media types of files that may be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadTypes(Vec<String>);

impl UploadTypes {
    /// `types` are lower case and without parameters, such as `image/png`.
    pub fn new(types: &[&str]) -> UploadTypes {
        UploadTypes(types.iter().map(|&essence| essence.to_owned()).collect())
    }

    /// The types, in lower case and without parameters.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromStr for UploadTypes {
    type Err = ();

    /// Parses comma-separated types. There must be at least one.
    fn from_str(text: &str) -> Result<Self, ()> {
        let types: Vec<String> = comma_separated(text).map(str::to_ascii_lowercase).collect();
        let all_valid = !types.is_empty() && types.iter().all(|essence| is_media_type(essence));
        all_valid.then_some(UploadTypes(types)).ok_or(())
    }
}

impl fmt::Display for UploadTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Whether `text` is `type/subtype`, each a token (RFC 9110, 5.6.2), and fits the 100 characters of the database
/// column.
fn is_media_type(text: &str) -> bool {
    let is_token = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    text.len() <= 100
        && text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
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
        assert_eq!("".parse(), Ok(CorsOrigins::Off));
        assert_eq!("*".parse(), Ok(CorsOrigins::Any));
        assert_eq!(
            "https://A.example, http://localhost:3000".parse(),
            Ok(CorsOrigins::List(vec!["https://a.example".into(), "http://localhost:3000".into()]))
        );
        for bad in [
            "example.com",
            "https://a.example/",
            "https://a.example/app",
            "https://*.example",
            "*,https://a.example",
        ] {
            assert_eq!(bad.parse::<CorsOrigins>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn every_word_stands_for_one_value_and_back() {
        fn check<C: Choice + std::fmt::Debug>() {
            for (word, value) in C::WORDS {
                assert_eq!(C::from_word(word), Some(*value));
                assert_eq!(value.word(), *word);
            }
            for (word, value) in C::ALIASES {
                assert_eq!(C::from_word(word), Some(*value));
                assert_ne!(value.word(), "");
            }
        }
        check::<Environment>();
        check::<HttpServer>();
        check::<MetricsAccess>();
        check::<bool>();
        check::<ApiKeyScope>();
        check::<ErrorFormat>();
        check::<LogFormat>();
        check::<Algorithm>();
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
}
