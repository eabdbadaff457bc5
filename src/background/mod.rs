//! Work that runs beside requests.

pub mod password_resets;
pub mod sweep;
