//! What handlers hear and say: requests, their fields, responses. The only place beside `server.rs`
//! that names the HTTP library.

pub mod client_address;
pub mod download;
pub mod fields;
pub mod multipart;
pub mod part;
pub mod query;
pub mod request;
pub mod response;
