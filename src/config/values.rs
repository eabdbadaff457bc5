//! The types of settings that are more than a number or a text.

use std::fmt;
use std::str::FromStr;

/// Development is forgiving; production refuses to start with unsafe settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Environment {
    /// Convenient defaults; reset tokens are logged.
    #[default]
    Development,
    /// Faces strangers.
    Production,
}

/// What listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpServer {
    /// The product's own listener.
    #[default]
    Builtin,
    /// The stock server, for use behind a proxy.
    Rouille,
}

/// Who may read `/metrics`; others are told there is no such path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsAccess {
    /// Nobody.
    Off,
    /// Loopback peers that forward for nobody.
    #[default]
    Loopback,
    /// Anyone.
    Any,
}

/// A value that must not be printed: its `Debug` form says nothing.
#[derive(Clone, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// HMAC algorithm of the tokens (RFC 7518, 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// HMAC with SHA-256.
    #[default]
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
}

impl Algorithm {
    /// A key must be at least as long as the hash (RFC 7518, 3.2).
    pub fn least_secret_bytes(self) -> usize {
        match self {
            Algorithm::Hs256 => 32,
            Algorithm::Hs384 => 48,
            Algorithm::Hs512 => 64,
        }
    }
}

/// Cost of a password hash. One hash takes `128 * r * 2^log_n` bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scrypt {
    /// Binary logarithm of N.
    pub log_n: u8,
    /// Block size.
    pub r: u32,
    /// Rounds, one after the other.
    pub p: u32,
}

impl FromStr for Scrypt {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<u32> = text
            .split(',')
            .map(|part| part.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| ())?;
        let &[log_n @ 1..=24, r @ 1..=32, p @ 1..=64] = parts.as_slice() else {
            return Err(());
        };
        let bytes = (128 * u64::from(r)) << log_n;
        if bytes > 1 << 30 { Err(()) } else { Ok(Scrypt { log_n: log_n as u8, r, p }) }
    }
}

/// Body of an error answer (contract, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorFormat {
    /// `{"detail": ..., "error_code": ...}`
    #[default]
    Detail,
    /// `{"error": {"code": ..., "message": ..., ...}}`
    Envelope,
}

/// Shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Which web pages of other origins may call (Fetch standard, CORS protocol).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CorsOrigins {
    /// CORS is off.
    #[default]
    Off,
    /// Every origin.
    Any,
    /// These, each written as browsers send it.
    List(Vec<String>),
}

impl FromStr for CorsOrigins {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let origins: Vec<&str> =
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        match origins.as_slice() {
            [] => Ok(CorsOrigins::Off),
            ["*"] => Ok(CorsOrigins::Any),
            origins => origins
                .iter()
                .map(|origin| is_origin(origin).then(|| origin.to_ascii_lowercase()).ok_or(()))
                .collect::<Result<_, _>>()
                .map(CorsOrigins::List),
        }
    }
}

/// `scheme://host[:port]` and nothing after it: a path or a trailing slash would never match.
pub fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_graphic() && !b"/?#*,".contains(&b))
    })
}

/// The types of files that are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadTypes(Vec<String>);

impl UploadTypes {
    /// Whether files of that type are taken; `essence` is lower case and without parameters.
    pub fn allow(&self, essence: &str) -> bool {
        self.0.iter().any(|allowed| allowed == essence)
    }
}

impl FromStr for UploadTypes {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let types: Vec<String> = text
            .split(',')
            .map(|part| part.trim().to_ascii_lowercase())
            .filter(|part| !part.is_empty())
            .collect();
        let all_good = types.iter().all(|part| is_media_type(part));
        (all_good && !types.is_empty()).then_some(UploadTypes(types)).ok_or(())
    }
}

/// `type/subtype` of token characters (RFC 9110, 5.6.2), as long as the database holds.
fn is_media_type(text: &str) -> bool {
    let is_token = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    text.len() <= 100
        && text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Where `X-API-Key` is asked for, once it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApiKeyScope {
    /// At exports only.
    #[default]
    Exports,
    /// At every endpoint below `/api/v1`.
    All,
}

/// Variables of the scripts and commands around the service: known, but no settings of it.
const BESIDE: [&str; 2] = ["CLOAKROOM_ADMIN_PASSWORD", "CLOAKROOM_PG_OPTIONS"];

/// The variables that start like a setting but are none, each with the known name nearest to it.
pub fn unknown_names<'a>(
    variables: impl Iterator<Item = &'a String>,
    known: &[&'static str],
) -> Vec<(String, &'static str)> {
    let mut unknown: Vec<_> = variables
        .filter(|name| {
            name.starts_with("CLOAKROOM_") && !name.starts_with("CLOAKROOM_TEST_POSTGRES")
        })
        .filter(|name| !known.contains(&name.as_str()) && !BESIDE.contains(&name.as_str()))
        .map(|name| {
            let nearest = known.iter().max_by(|a, b| {
                strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
            });
            (name.clone(), nearest.copied().unwrap_or_default())
        })
        .collect();
    unknown.sort();
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrypt_parameters_are_three_numbers_within_a_gibibyte() {
        assert_eq!("14,8,5".parse(), Ok(Scrypt { log_n: 14, r: 8, p: 5 }));
        for bad in [
            "", "14", "14,8", "0,8,5", "14,0,5", "14,8,0", "14,8,5,1", "x,8,5", "24,32,1", "20,9,1",
        ] {
            assert_eq!(bad.parse::<Scrypt>(), Err(()), "{bad}");
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
    fn a_misspelt_setting_is_answered_with_the_nearest_name() {
        let names =
            ["CLOAKROOM_LISTN".to_owned(), "CLOAKROOM_LISTEN".to_owned(), "PATH".to_owned()];
        let known = ["CLOAKROOM_LOG", "CLOAKROOM_LISTEN", "CLOAKROOM_ENV"];
        assert_eq!(
            unknown_names(names.iter(), &known),
            [("CLOAKROOM_LISTN".to_owned(), "CLOAKROOM_LISTEN")]
        );
    }
}
