//! The endpoints, each in one rhythm: parse, validate, store, respond. Bodies are read and passwords hashed before
//! the database is asked, so that no connection is held while waiting for a client or a hash.

pub mod admin;
pub mod auth;
pub mod exports;
pub mod health;
pub mod me;
pub mod metrics;
pub mod test_only;
pub mod uploads;
pub mod users;
