//! The settings of a store that speaks the protocol of Amazon S3, and keeps contents in the place of the data
//! directory.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::reader::SettingsReader;
use super::values::{Secret, is_loopback, is_origin};
use super::words::Environment;

const URL: &str = "CLOAKROOM_STORAGE_URL";
const ACCESS_KEY: &str = "CLOAKROOM_STORAGE_ACCESS_KEY";
const SECRET_KEY: &str = "CLOAKROOM_STORAGE_SECRET_KEY";

const URLS: &str =
    "s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME, also with &style=host";
/// The longest prefix, in bytes. A key has at most 1024, and begins with it.
const MAX_PREFIX: usize = 512;

/// Where the store is, and how to use it.
#[derive(Clone)]
pub struct StoreSettings {
    pub url: StoreUrl,
    pub access_key: Secret,
    pub secret_key: Secret,
    /// The authorities that may sign the certificate of the store; `None` for those that the system trusts.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
}

/// The place of contents in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    pub bucket: String,
    /// The beginning of all keys: empty, or it ends with a slash.
    pub prefix: String,
    /// `http` or `https`.
    pub scheme: String,
    /// The host of the store, and its port unless that is the one of the scheme.
    pub authority: String,
    /// The region that is signed.
    pub region: String,
    /// Whether the bucket is a part of the host name and not of the path.
    pub is_host_style: bool,
}

impl StoreUrl {
    /// Whether requests may be read on their way.
    fn is_exposed(&self) -> bool {
        self.scheme == "http" && !is_loopback(host_of(&self.authority))
    }
}

/// The host of an authority, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    };
    host.trim_matches(['[', ']'])
}

/// The place as messages name it: without the endpoint.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{} at {}", self.bucket, self.prefix, self.authority)
    }
}

impl FromStr for StoreUrl {
    type Err = ();

    /// Parses `s3://BUCKET/PREFIX?endpoint=...&region=...`. The prefix may be left out.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (place, query) = text.strip_prefix("s3://").ok_or(())?.split_once('?').ok_or(())?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_name = |name: &str| {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
            !name.trim_matches('.').is_empty() && name.bytes().all(is_plain)
        };
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_name);
        if !is_name(bucket) || !is_prefix || prefix.len() > MAX_PREFIX {
            return Err(());
        }
        let [mut endpoint, mut region, mut style] = [const { None }; 3];
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "endpoint" => &mut endpoint,
                "region" => &mut region,
                "style" => &mut style,
                _ => return Err(()),
            };
            if field.replace(value.into_owned()).is_some() {
                return Err(());
            }
        }
        let (scheme, authority) = parse_endpoint(&endpoint.ok_or(())?)?;
        let region = region.filter(|name| is_name(name)).ok_or(())?;
        let is_host_style = match style.as_deref() {
            None | Some("path") => false,
            // An address cannot have the bucket before it.
            Some("host") if host_of(&authority).parse::<IpAddr>().is_err() => true,
            Some(_) => return Err(()),
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(StoreUrl { bucket: bucket.to_owned(), prefix, scheme, authority, region, is_host_style })
    }
}

/// Parses `https://HOST:PORT` or the same with `http`, and returns the scheme and the authority.
fn parse_endpoint(text: &str) -> Result<(String, String), ()> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (scheme, authority) = text.split_once("://").ok_or(())?;
    let default_port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return Err(()),
    };
    let authority = authority.strip_suffix(default_port).unwrap_or(authority);
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let is_good = is_origin(text) && is_port && !authority.contains(['@', '\\']);
    is_good.then(|| (scheme.to_owned(), authority.to_owned())).ok_or(())
}

/// Reads the settings of the store; `None` if there is none, or if one of them is wrong.
pub fn read(r: &mut SettingsReader, environment: Environment) -> Option<StoreSettings> {
    let shown = |text: &str, _: &StoreUrl| text.to_owned();
    let url = r.setting(&[URL]).optional_hidden(URLS, |text| text.parse().ok(), shown);
    let access_key = r.setting(&[ACCESS_KEY]).secret("");
    let secret_key = r.setting(&[SECRET_KEY]).secret("");
    let allowed = "a PEM file with the certificates of the authorities that sign the store's";
    let authorities = r.setting(&["CLOAKROOM_STORAGE_CA"]).read("", allowed, certificates);
    let url = url?;
    if environment == Environment::Production && url.is_exposed() {
        let text = format!("{URL} has an endpoint without TLS; in production use https");
        r.faults.push((URL, text));
    }
    for (name, key) in [(ACCESS_KEY, &access_key), (SECRET_KEY, &secret_key)] {
        let fault = match key {
            None => format!("{name} is not set; {URL} needs it"),
            Some(key) if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) => {
                format!("{name} holds \"(not shown)\"; allowed: printable ASCII without blanks")
            }
            Some(_) => continue,
        };
        r.faults.push((name, fault));
    }
    let (access_key, secret_key) = access_key.zip(secret_key)?;
    Some(StoreSettings { url, access_key, secret_key, authorities })
}

/// Reads the certificates of a PEM file; `None` if it has none, or anything else.
fn certificates(path: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path).ok()?.collect::<Result<_, _>>().ok()?;
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_store_has_a_bucket_an_endpoint_and_a_region() {
        let parse = |text: &str| text.parse::<StoreUrl>();
        let url = parse("s3://files/a/b/?endpoint=https://s3.example.com:443/&region=eu-1");
        let expected = StoreUrl {
            bucket: "files".into(),
            prefix: "a/b/".into(),
            scheme: "https".into(),
            authority: "s3.example.com".into(),
            region: "eu-1".into(),
            is_host_style: false,
        };
        assert_eq!(url, Ok(expected));
        let url = parse("s3://files?region=garage&style=host&endpoint=http%3A%2F%2Flocalhost:3900");
        let url = url.map(|url| (url.prefix.clone(), url.is_host_style, url.is_exposed()));
        assert_eq!(url, Ok((String::new(), true, false)));
        for text in [
            "",
            "https://files?endpoint=https://h&region=r",
            "s3://files",
            "s3://files?endpoint=https://h",
            "s3://files?region=r",
            "s3://?endpoint=https://h&region=r",
            "s3://../a?endpoint=https://h&region=r",
            "s3://files/../a?endpoint=https://h&region=r",
            "s3://files//a?endpoint=https://h&region=r",
            "s3://files/a b?endpoint=https://h&region=r",
            "s3://files?endpoint=ftp://h&region=r",
            "s3://files?endpoint=https://h/path&region=r",
            "s3://files?endpoint=https://ann:x@h&region=r",
            "s3://files?endpoint=https://h:0&region=r",
            "s3://files?endpoint=https://h&region=r&style=other",
            "s3://files?endpoint=https://192.0.2.1&region=r&style=host",
            "s3://files?endpoint=https://[2001:db8::1]:3900&region=r&style=host",
            "s3://files?endpoint=https://h&region=r&region=r",
            "s3://files?endpoint=https://h&region=r&key=x",
        ] {
            assert_eq!(parse(text), Err(()), "{text}");
        }
    }

    #[test]
    fn only_plain_http_to_another_host_is_exposed() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:3900", false),
            ("http://localhost", false),
            ("https://192.0.2.1", false),
            ("http://192.0.2.1:3900", true),
            ("http://[2001:db8::1]", true),
            ("http://localhost.example.com", true),
        ] {
            let url = format!("s3://files?endpoint={endpoint}&region=r").parse::<StoreUrl>();
            assert_eq!(url.map(|url| url.is_exposed()), Ok(expected), "{endpoint}");
        }
    }
}
