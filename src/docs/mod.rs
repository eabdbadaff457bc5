//! The OpenAPI document, and the pages for people with what they load.

pub mod openapi;
pub mod pages;
