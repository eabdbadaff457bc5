//! The settings of a store that speaks the protocol of Amazon S3, and keeps contents in the place of the data
//! directory.

use std::fmt;
use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::reader::SettingsReader;
use super::values::{Origin, Secret, is_loopback};
use super::words::Environment;

const URL: &str = "CLOAKROOM_STORAGE_URL";
const ACCESS_KEY: &str = "CLOAKROOM_STORAGE_ACCESS_KEY";
const SECRET_KEY: &str = "CLOAKROOM_STORAGE_SECRET_KEY";

const URLS: &str =
    "s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME, also with &style=host";
const NO_CLIENT: &str = "nothing, because this build has no client of a store: the cargo feature s3 adds it, and the \
                         Debian package has it";
/// The longest prefix, in bytes. A key has at most 1024, and begins with it.
const MAX_PREFIX: usize = 512;

/// Where the store is, and how to use it.
#[derive(Clone)]
#[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "only a client of a store uses them"))]
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
    /// Whether requests may be read on their way.
    is_exposed: bool,
}

impl StoreUrl {
    /// Parses `s3://BUCKET/PREFIX?endpoint=...&region=...`. The prefix may be left out.
    pub fn parse(text: &str) -> Option<StoreUrl> {
        let (place, query) = text.strip_prefix("s3://")?.split_once('?')?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_name = |name: &str| {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
            !name.trim_matches('.').is_empty() && name.bytes().all(is_plain)
        };
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_name);
        if !is_name(bucket) || !is_prefix || prefix.len() > MAX_PREFIX {
            return None;
        }
        let [mut endpoint, mut region, mut style] = [const { None }; 3];
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "endpoint" => &mut endpoint,
                "region" => &mut region,
                "style" => &mut style,
                _ => return None,
            };
            if field.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        let region = region.filter(|name| is_name(name))?;
        let endpoint = endpoint?;
        let endpoint = parse_endpoint(&endpoint)?;
        let host = endpoint.host.trim_matches(['[', ']']);
        let is_host_style = match style.as_deref() {
            None | Some("path") => false,
            // An address cannot have the bucket before it.
            Some("host") if host.parse::<IpAddr>().is_err() => true,
            Some(_) => return None,
        };
        Some(StoreUrl {
            bucket: bucket.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            scheme: endpoint.scheme.to_owned(),
            authority: endpoint.authority(),
            region,
            is_host_style,
            is_exposed: endpoint.scheme == "http" && !is_loopback(host),
        })
    }
}

/// The place as messages name it: without the endpoint.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{} at {}", self.bucket, self.prefix, self.authority)
    }
}

/// Parses `https://HOST:PORT` or the same with `http`.
fn parse_endpoint(text: &str) -> Option<Origin<'_>> {
    let endpoint = Origin::parse(text.strip_suffix('/').unwrap_or(text))?;
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let has_good_port = endpoint.port.is_none_or(is_port);
    let is_good = endpoint.is_web() && has_good_port && !endpoint.host.contains(['@', '\\']);
    is_good.then_some(endpoint)
}

/// Reads the settings of the store; `None` if there is none, or if one of them is wrong.
pub fn read(r: &mut SettingsReader, environment: Environment) -> Option<StoreSettings> {
    let shown = |text: &str, _: &StoreUrl| text.to_owned();
    let url = r.setting(&[URL]).optional_hidden(URLS, StoreUrl::parse, shown);
    let access_key = r.setting(&[ACCESS_KEY]).secret("");
    let secret_key = r.setting(&[SECRET_KEY]).secret("");
    let allowed = "a PEM file with the certificates of the authorities that sign the store's";
    let authorities = r.setting(&["CLOAKROOM_STORAGE_CA"]).read("", allowed, certificates);
    let url = url?;
    if cfg!(not(feature = "s3")) {
        let text = format!("{URL} holds \"(not shown)\"; allowed: {NO_CLIENT}");
        r.faults.push((URL, text));
        return None;
    }
    if environment == Environment::Production && url.is_exposed {
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
pub fn certificates(path: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path).ok()?.collect::<Result<_, _>>().ok()?;
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "s3"))]
    #[test]
    fn a_build_without_a_client_refuses_a_store_and_names_the_feature() {
        let variables = [(URL.to_owned(), "s3://files?endpoint=https://h&region=r".to_owned())];
        let mut reader = SettingsReader::new(variables.into());
        assert!(read(&mut reader, Environment::Development).is_none());
        let [(name, fault)] = &reader.faults[..] else { panic!("one fault") };
        assert!(*name == URL && fault.contains("the cargo feature s3 adds it"), "{fault}");
    }

    #[test]
    fn a_place_in_a_store_has_a_bucket_an_endpoint_and_a_region() {
        let parse = StoreUrl::parse;
        let url = parse("s3://files/a/b/?endpoint=https://s3.example.com:443/&region=eu-1");
        let expected = StoreUrl {
            bucket: "files".into(),
            prefix: "a/b/".into(),
            scheme: "https".into(),
            authority: "s3.example.com".into(),
            region: "eu-1".into(),
            is_host_style: false,
            is_exposed: false,
        };
        assert_eq!(url, Some(expected));
        let url = parse("s3://files?region=garage&style=host&endpoint=http%3A%2F%2Flocalhost:3900");
        let url = url.map(|url| (url.prefix.clone(), url.is_host_style, url.is_exposed));
        assert_eq!(url, Some((String::new(), true, false)));
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
            assert_eq!(parse(text), None, "{text}");
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
            let url = StoreUrl::parse(&format!("s3://files?endpoint={endpoint}&region=r"));
            assert_eq!(url.map(|url| url.is_exposed), Some(expected), "{endpoint}");
        }
    }
}
