//! Responses that carry a file of the binary. Browsers keep it, and ask each time whether it is still current
//! (`Cache-Control: no-cache`), so that an upgrade of the service shows at once.

use super::request::Request;
use super::response::{self, Response};

/// 200 with a text, which is sent each time: it must be short.
pub fn text(content_type: &'static str, text: &'static str) -> Response {
    response::stream(200, text.as_bytes(), text.len() as u64)
        .with_unique_header("Content-Type", content_type)
        .with_unique_header("Cache-Control", "no-cache")
}

/// 200 with a file that is stored compressed by gzip, or 304 if the client has it already.
///
/// The file is sent as it is stored, whatever `Accept-Encoding` says, so caches need no `Vary`. A client that does not
/// accept gzip should get it uncompressed (RFC 9110, 12.5.3), but every browser accepts it, and for anything else a
/// browser's script is of no use; a decompressor in the binary would serve nobody.
///
/// The entity tag is the end of the file: checksum and length of the uncompressed content (RFC 1952, 2.3.1).
pub fn gzip(request: &Request, content_type: &'static str, file: &'static [u8]) -> Response {
    let end = file.last_chunk::<8>().copied().unwrap_or_default();
    let tag = format!("\"{:016x}\"", u64::from_be_bytes(end));
    let response = if request.knows_tag(&tag) == Some(true) {
        response::stream(304, std::io::empty(), 0)
    } else {
        response::stream(200, file, file.len() as u64)
            .with_unique_header("Content-Type", content_type)
            .with_unique_header("Content-Encoding", "gzip")
    };
    response.with_unique_header("ETag", tag).with_unique_header("Cache-Control", "no-cache")
}
