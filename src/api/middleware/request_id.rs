//! Request ids.

use uuid::Uuid;

/// The client's own id where that is a UUID, otherwise a new one (contract, 3).
pub fn request_id(header: Option<&str>) -> Uuid {
    header.and_then(|text| text.trim().parse().ok()).unwrap_or_else(Uuid::new_v4)
}
