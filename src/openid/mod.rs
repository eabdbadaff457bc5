//! The client of an OpenID provider (OpenID Connect Core 1.0, Discovery 1.0): what it says of itself, and of a person.

mod client;
mod fault;
mod id_token;
mod metadata;
mod turns;

pub use client::{Grant, MAX_AGE, Provider};
pub use fault::{Fault, words};
pub use id_token::{ALGORITHMS, Person};
pub use metadata::Metadata;
