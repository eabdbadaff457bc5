//! Types of the domain and the rules they obey.

pub mod fields;
pub mod page;
pub mod timestamp;
pub mod user;
