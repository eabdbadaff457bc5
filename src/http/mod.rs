//! Requests and responses as handlers see them. The HTTP library's types stay behind this module, the
//! servers below it and the pipeline above it.

pub mod body;
pub mod client_address;
pub mod csv;
pub mod file_response;
pub mod multipart;
pub mod params;
mod part_header;
pub mod request;
pub mod request_id;
pub mod response;
pub mod status;
