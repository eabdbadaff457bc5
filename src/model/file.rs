//! Files as clients see them, and the check of a file's first bytes against its declared type.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// How many of a file's first bytes are examined to recognise its type.
pub const SIGNATURE_BYTES: usize = 8192;

/// A stored file.
#[derive(Debug, Clone, Serialize)]
pub struct File {
    /// Also the name under which the content is stored on disk.
    pub id: Uuid,
    /// The owner.
    pub user_id: Uuid,
    /// The name that is shown. The owner may change it.
    pub filename: String,
    /// The name given at upload. Downloads are saved under it.
    pub original_filename: String,
    /// Media type without parameters, in lower case.
    pub content_type: String,
    /// In bytes.
    pub file_size: i64,
    /// SHA-256 of the content in hexadecimal digits. Clients see it as `sha256:<digits>`.
    #[serde(serialize_with = "with_algorithm")]
    pub file_hash: String,
    pub description: Option<String>,
    pub upload_date: Timestamp,
    /// Last change of the name, the description or `is_public`.
    pub updated_at: Timestamp,
    /// Whether every signed-in user may read it, not only the owner.
    pub is_public: bool,
}

fn with_algorithm<S: Serializer>(hash: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("sha256:{hash}"))
}

/// The essence of a declared media type (WHATWG MIME Sniffing): without parameters, in lower case. It is `text/plain`
/// where no type is declared (RFC 7578, 4.4).
pub fn essence(declared: Option<&str>) -> String {
    let essence = declared.map(|text| text.split(';').next().unwrap_or_default());
    essence.unwrap_or("text/plain").trim().to_ascii_lowercase()
}

/// Whether the first bytes of a file are the signature of another type than the declared one. UTF-8 without NUL that is
/// declared as text is always believed, because some signatures are two letters long and occur in ordinary text.
pub fn contradicts(essence: &str, first: &[u8]) -> bool {
    let is_text = essence.starts_with("text/") && is_utf8_text(first);
    !is_text && infer::get(first).is_some_and(|found| found.mime_type() != essence)
}

/// Whether the bytes are UTF-8 without NUL. If there are [`SIGNATURE_BYTES`] of them, the file probably goes on, so its
/// last character may be cut off.
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
    fn a_signature_of_another_type_contradicts_the_declared_one() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let cut = [b"x".repeat(SIGNATURE_BYTES - 1), vec![0xc3]].concat();
        for (declared, first, expected, reason) in [
            ("image/png", &png[..], false, "a picture of the declared type"),
            ("image/jpeg", png, true, "a picture of another type"),
            ("image/png", b"<!DOCTYPE html><p>", true, "an HTML page"),
            ("image/png", b"hello", false, "no known signature"),
            ("image/png", b"", false, "empty"),
            ("text/plain", b"BMW sales", false, "text, though BM is the signature of BMP"),
            ("text/plain", b"%PDF-1.4 as text", false, "text, though it begins like a PDF"),
            ("text/plain", png, true, "a picture"),
            ("text/plain", b"MZ\0\0", true, "a Windows program"),
            ("text/plain", b"caf\xe9", false, "not UTF-8, but without a known signature"),
            ("text/plain", &cut, false, "a character cut off after the examined bytes"),
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
