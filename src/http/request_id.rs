//! The id of a request, which appears in the log and in the response header `X-Request-ID`.

use uuid::Uuid;

/// The id that the client sent, if it is a UUID, otherwise a new one. Other text is not taken over into the log.
pub fn request_id(header: Option<&str>) -> Uuid {
    header.and_then(|text| text.trim().parse().ok()).unwrap_or_else(Uuid::new_v4)
}
