//! The domain's types, and the rules that their values obey.

pub mod audit;
pub mod file;
pub mod filename;
pub mod hex;
pub mod page;
pub mod personal_token;
pub mod problems;
pub mod rule;
pub mod rules;
pub mod session;
pub mod timestamp;
pub mod user;
