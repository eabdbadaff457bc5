//! The endpoints. Each function parses and validates the request, reads or changes what is stored, and responds. No
//! database connection is held while a body is read or a password hashed, because both take long.

pub mod admin;
pub mod auth;
pub mod changes;
pub mod email_confirmation;
pub mod exports;
pub mod health;
pub mod links;
pub mod me;
pub mod personal_tokens;
pub mod second_factor;
mod second_factor_code;
pub mod sessions;
pub mod test_only;
mod upload_form;
pub mod uploads;
pub mod users;
