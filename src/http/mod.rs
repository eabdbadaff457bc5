//! Requests and responses as handlers see them. Handlers do not name the HTTP library: only this module, the servers
//! and the pipeline do.

mod any_parameters;
pub mod body;
pub mod client_address;
pub mod conditions;
pub mod csv;
pub mod error_response;
pub mod file_response;
pub mod multipart;
pub mod params;
mod part_header;
pub mod request;
pub mod response;
