//! Storage as the API shows them, and what their contents may be.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// How many of the first bytes tell a file's type.
pub const SIGNATURE_BYTES: usize = 8192;

/// A stored file.
#[derive(Debug, Clone, Serialize)]
pub struct File {
    /// Made by the service; also the name of the content on disk.
    pub id: Uuid,
    /// Owner.
    pub user_id: Uuid,
    /// Display name.
    pub filename: String,
    /// The name sent at upload.
    pub original_filename: String,
    /// Type without parameters, lower case.
    pub content_type: String,
    /// Bytes.
    pub file_size: i64,
    /// SHA-256 of the content, hexadecimal; shown after `sha256:`.
    #[serde(serialize_with = "with_algorithm")]
    pub file_hash: String,
    /// Free text.
    pub description: Option<String>,
    /// Time of upload.
    pub upload_date: Timestamp,
    /// Last change of name, description or publicity.
    pub updated_at: Timestamp,
    /// Any signed-in user may read it.
    pub is_public: bool,
}

fn with_algorithm<S: Serializer>(hash: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("sha256:{hash}"))
}

/// A declared type without its parameters, lower case; `text/plain` where none is declared
/// (RFC 7578, 4.4).
pub fn essence(declared: Option<&str>) -> String {
    let essence = declared.map(|text| text.split(';').next().unwrap_or_default());
    essence.unwrap_or("text/plain").trim().to_ascii_lowercase()
}

/// Whether the first bytes show that the content is of another type than the declared one. Text is
/// never doubted: signatures of two letters are found in any.
pub fn contradicts(essence: &str, first: &[u8]) -> bool {
    let is_text = essence.starts_with("text/") && is_utf8_text(first);
    !is_text && infer::get(first).is_some_and(|found| found.mime_type() != essence)
}

/// UTF-8 without NUL; a character may be cut off at the end.
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
