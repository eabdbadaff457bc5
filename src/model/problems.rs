//! The problems of values and bodies that clients send: the `type` and `msg` of each error in a 422 response.

use std::borrow::Cow;

use crate::error::Problem;

/// The list is longer than `max`.
pub fn too_many_items(max: usize) -> Problem {
    value_error(format!("Must have at most {max} items"))
}

/// The form has more parts than `max`.
pub fn too_many_parts(max: usize) -> Problem {
    value_error(format!("Must have at most {max} parts"))
}

/// A required value is absent.
pub const MISSING: Problem = fixed("missing", "Field required");

/// A value that must be single came more than once.
pub const SENT_TWICE: Problem = fixed("value_error", "Must be sent only once");

/// A part of a form is encoded, which the specification of forms deprecates (RFC 7578, 4.7).
pub const ENCODED_PART: Problem =
    fixed("value_error", "Content-Transfer-Encoding must be 7bit, 8bit or binary");

/// A text is not UTF-8.
pub const NOT_UTF8: Problem = fixed("value_error", "Must be UTF-8");

/// The parameter cannot be combined with `others`.
pub fn not_beside(others: &str) -> Problem {
    value_error(format!("Must not be given beside {others}"))
}

/// The parameter is given under both of its names, with different values.
pub fn not_the_same_as(other: &str) -> Problem {
    value_error(format!("Must be the same as {other}"))
}

/// The owner of the account is invited, which an inactive account cannot be.
pub const NOT_INACTIVE: Problem = fixed("value_error", "Must not be false with invite");

/// The value is something other than a string.
pub const NOT_A_STRING: Problem = fixed("string_type", "Must be a string");

/// The value is something other than a list of strings.
pub const NOT_A_LIST: Problem = fixed("value_error", "Must be a list of strings");

/// The value is no SHA-256 in hexadecimal digits.
pub const NOT_A_SHA256: Problem = fixed("value_error", "Must be 64 hexadecimal digits");

/// The content is not the one whose SHA-256 the client named.
pub const OTHER_CONTENT: Problem = fixed("value_error", "The content has another SHA-256");

/// The body is not UTF-8 or not JSON.
pub const NOT_JSON: Problem = fixed("json_invalid", "Invalid JSON");

/// The body is JSON, but not an object.
pub const NOT_AN_OBJECT: Problem = fixed("value_error", "Must be an object");

/// The body is not `multipart/form-data`, or it ends before its closing delimiter.
pub const NOT_MULTIPART: Problem = fixed(
    "value_error",
    "Must be multipart/form-data, complete, with its boundary in Content-Type",
);

/// The value is something other than a boolean.
pub const NOT_A_BOOLEAN: Problem = fixed("bool_type", "Must be a boolean");

/// The value is something other than a whole number of 64 bits.
pub const NOT_AN_INTEGER: Problem = fixed("int_parsing", "Must be an integer");

/// A problem of the general type `value_error`, for which no other type fits.
pub fn value_error(message: impl Into<Cow<'static, str>>) -> Problem {
    problem("value_error", message)
}

/// A problem whose message is always the same.
const fn fixed(kind: &'static str, message: &'static str) -> Problem {
    Problem { kind, message: Cow::Borrowed(message) }
}

/// A problem with its `type`, by which programs recognise it, and its message for people.
pub fn problem(kind: &'static str, message: impl Into<Cow<'static, str>>) -> Problem {
    Problem { kind, message: message.into() }
}
