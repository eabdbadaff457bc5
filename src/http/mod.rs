//! What handlers hear and say: requests, their fields, responses. The only place beside `server.rs`
//! that names the HTTP library.

pub mod body;
pub mod client_address;
pub mod csv;
pub mod fields;
pub mod file_response;
pub mod multipart;
pub mod part_header;
pub mod query;
pub mod request;
pub mod response;
