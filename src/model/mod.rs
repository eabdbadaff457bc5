//! Types of the domain and the rules they obey.

pub mod file;
pub mod page;
pub mod rules;
pub mod timestamp;
pub mod user;
