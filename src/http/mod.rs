//! Requests and responses as handlers see them. Handlers do not name the HTTP library: only this module, the servers
//! and the pipeline do.

pub mod batched_body;
pub mod body;
pub mod client_address;
pub mod csv;
pub mod file_range;
pub mod file_response;
pub mod input;
pub mod multipart;
pub mod params;
mod part_header;
pub mod request;
pub mod request_id;
pub mod response;
pub mod static_file;
pub mod status;
