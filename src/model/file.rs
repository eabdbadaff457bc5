//! Files as clients see them, and whether a content is of its declared type.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// How many of a file's first bytes are looked at to recognise its type.
pub const SIGNATURE_BYTES: usize = 8192;

/// A stored file.
#[derive(Debug, Clone, Serialize)]
pub struct File {
    /// Also the name of the content on disk.
    pub id: Uuid,
    /// The owner.
    pub user_id: Uuid,
    /// The name that is shown, which the owner may change.
    pub filename: String,
    /// The name sent at upload, under which the file is downloaded.
    pub original_filename: String,
    /// Media type without parameters, in lower case.
    pub content_type: String,
    /// In bytes.
    pub file_size: i64,
    /// SHA-256 of the content in hexadecimal; clients see it after `sha256:`.
    #[serde(serialize_with = "with_algorithm")]
    pub file_hash: String,
    pub description: Option<String>,
    pub upload_date: Timestamp,
    /// Last change of the name, the description or `is_public`.
    pub updated_at: Timestamp,
    /// Whether every signed-in user may read it.
    pub is_public: bool,
}

fn with_algorithm<S: Serializer>(hash: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("sha256:{hash}"))
}

/// The declared type without its parameters, in lower case; `text/plain` where none is declared (RFC 7578, 4.4).
pub fn essence(declared: Option<&str>) -> String {
    let essence = declared.map(|text| text.split(';').next().unwrap_or_default());
    essence.unwrap_or("text/plain").trim().to_ascii_lowercase()
}

/// Whether the first bytes of a content are the signature of another type than the declared one. A declared text
/// that is UTF-8 without NUL is never doubted, because signatures of two letters occur in honest text.
pub fn contradicts(essence: &str, first: &[u8]) -> bool {
    let is_text = essence.starts_with("text/") && is_utf8_text(first);
    !is_text && infer::get(first).is_some_and(|found| found.mime_type() != essence)
}

/// Whether the bytes are UTF-8 without NUL. Where they are the first of many, the last character may be cut off.
fn is_utf8_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && bytes.len() == SIGNATURE_BYTES,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_must_not_contradict_their_declared_type() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let cut = [b"x".repeat(SIGNATURE_BYTES - 1), vec![0xc3]].concat();
        for (declared, first, expected, reason) in [
            ("image/png", &png[..], false, "what it says"),
            ("image/jpeg", png, true, "another picture"),
            ("image/png", b"<!DOCTYPE html><p>", true, "a page"),
            ("image/png", b"hello", false, "no known signature"),
            ("image/png", b"", false, "empty"),
            ("text/plain", b"BMW sales", false, "text, though BM starts a picture"),
            ("text/plain", b"%PDF-1.4 as text", false, "text, whatever it starts with"),
            ("text/plain", png, true, "no text"),
            ("text/plain", b"MZ\0\0", true, "a program"),
            ("text/plain", b"caf\xe9", false, "an old encoding"),
            ("text/plain", &cut, false, "a character across the edge"),
        ] {
            assert_eq!(contradicts(declared, first), expected, "{declared}: {reason}");
        }
    }

    #[test]
    fn types_are_compared_without_parameters_and_case() {
        for (declared, expected) in [
            (None, "text/plain"),
            (Some("Text/Plain; charset=UTF-8"), "text/plain"),
            (Some(" IMAGE/PNG ;x"), "image/png"),
            (Some(""), ""),
        ] {
            assert_eq!(essence(declared), expected);
        }
    }
}
