//! Responses with files that are embedded in the binary. Browsers may store them, but ask each time whether they are
//! still current (`Cache-Control: no-cache`), so that an upgrade of the service takes effect at once.

use super::request::Request;
use super::response::Response;

/// 200 with an embedded text. It has no entity tag and is sent anew each time, so it should be short.
pub fn text(content_type: &'static str, text: &'static str) -> Response {
    Response::new(200, content_type, text.as_bytes()).with_header("Cache-Control", "no-cache")
}

/// 200 with a file that is stored compressed by gzip, or 304 if the client has it already.
///
/// The file is sent as it is stored, whatever `Accept-Encoding` says, so caches need no `Vary`. A client that does not
/// accept gzip should get it uncompressed (RFC 9110, 12.5.3), but every browser accepts gzip, and these files are only
/// for browsers. So the binary needs no decompressor.
///
/// The entity tag is the last eight bytes of the file, which are the CRC-32 and the length of the uncompressed content
/// (RFC 1952, 2.3.1).
pub fn gzip(request: &Request, content_type: &'static str, file: &'static [u8]) -> Response {
    let end = file.last_chunk::<8>().copied().unwrap_or_default();
    let tag = format!("\"{:016x}\"", u64::from_be_bytes(end));
    let response = if request.knows_tag(&tag) == Some(true) {
        Response::empty(304)
    } else {
        Response::new(200, content_type, file).with_header("Content-Encoding", "gzip")
    };
    response.with_header("ETag", tag).with_header("Cache-Control", "no-cache")
}
