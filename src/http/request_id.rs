//! The id under which a request is logged, and which its response carries.

use uuid::Uuid;

/// The client's own id where it is a UUID, else a new one.
pub fn request_id(header: Option<&str>) -> Uuid {
    header.and_then(|text| text.trim().parse().ok()).unwrap_or_else(Uuid::new_v4)
}
