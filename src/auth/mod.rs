//! Pure code that security rests on: no I/O, and time and randomness are arguments.

pub mod jwt;
pub mod password;
pub mod password_hasher;
pub mod token_bucket;
