//! The domain's types, and the rules that their values obey.

pub mod audit;
#[cfg(feature = "extras")]
pub mod audit_event;
#[cfg(feature = "extras")]
pub mod change;
pub mod content_type;
pub mod file;
pub mod filename;
pub mod identity;
pub mod media_type;
pub mod page;
#[cfg(feature = "extras")]
pub mod position;
pub mod problems;
#[cfg(feature = "extras")]
pub mod qr;
pub mod rules;
pub mod second_factor;
pub mod signature;
pub mod text;
pub mod timestamp;
pub mod type_families;
pub mod user;
pub mod utf8;

/// Hexadecimal text: two lower-case digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
