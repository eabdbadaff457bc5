//! The OpenAPI document, and the pages for people with what they load.

#[cfg(feature = "extras")]
mod console;
pub mod openapi;
pub mod pages;
