//! The signature of a request to the store: AWS Signature Version 4, in the header `Authorization`.
//!
//! It covers the hash of the body, so the store refuses a body that was changed on its way. Libraries that sign URLs
//! instead leave the body out of the signature (`UNSIGNED-PAYLOAD`).

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::model::hex;

/// What is percent-encoded in a query: all but the unreserved characters of RFC 3986.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same for a path, whose slashes stay.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// Who signs, and for which region.
pub struct Signer<'a> {
    pub access_key: &'a str,
    pub secret_key: &'a str,
    pub region: &'a str,
}

/// The parts of a request that are signed.
pub struct SignedParts<'a> {
    pub method: &'a str,
    /// Percent-encoded, see [`encode_path`].
    pub path: &'a str,
    /// Percent-encoded, see [`encode_query`]; in the order of names.
    pub query: &'a str,
    /// Names in lower case, in their order, and values.
    pub headers: &'a [(&'a str, String)],
    /// SHA-256 of the body, in hexadecimal.
    pub body_hash: &'a str,
}

impl Signer<'_> {
    /// The value of `Authorization` at the time that the header `x-amz-date` has, see [`date`].
    pub fn sign(&self, request: &SignedParts, date: &str) -> String {
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let headers: String =
            request.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let SignedParts { method, path, query, body_hash, .. } = request;
        let canonical = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{body_hash}");
        let day = date.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let hash = hex(&Sha256::digest(canonical));
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hash}");
        let parts = [day, self.region, "s3", "aws4_request", &text];
        let first = format!("AWS4{}", self.secret_key).into_bytes();
        let signature = hex(&parts.iter().fold(first, |key, part| authenticate(&key, part)));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        )
    }
}

/// HMAC-SHA256, which takes keys of any length.
fn authenticate(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The present time as `x-amz-date` has it, such as `20130524T000000Z`.
pub fn date() -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    OffsetDateTime::now_utc().format(format).unwrap_or_default()
}

/// A path, percent-encoded as it is signed.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// A query, percent-encoded as it is signed. The parameters must be in the order of their names.
pub fn encode_query(parameters: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        format!("{}={}", utf8_percent_encode(name, QUERY), utf8_percent_encode(value, QUERY))
    };
    parameters.iter().map(pair).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example in the documentation of Amazon S3, "Signature Calculations for the Authorization Header": GET Bucket
    /// (List Objects).
    #[test]
    fn the_published_example_has_this_signature() {
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let (date, empty) = ("20130524T000000Z", hex(&Sha256::digest(b"")));
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com".to_owned()),
            ("x-amz-content-sha256", empty.clone()),
            ("x-amz-date", date.to_owned()),
        ];
        let query = encode_query(&[("max-keys", "2"), ("prefix", "J")]);
        let request = SignedParts {
            method: "GET",
            path: "/",
            query: &query,
            headers: &headers,
            body_hash: &empty,
        };
        let expected = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                        SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
                        Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert_eq!(signer.sign(&request, date), expected);
    }

    #[test]
    fn all_but_unreserved_characters_are_encoded() {
        assert_eq!(encode_path("/a b/c+d~e"), "/a%20b/c%2Bd~e");
        assert_eq!(encode_query(&[("prefix", "a/b=&"), ("x", "")]), "prefix=a%2Fb%3D%26&x=");
        assert_eq!(date().len(), "20130524T000000Z".len());
    }
}
