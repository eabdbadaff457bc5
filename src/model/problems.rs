//! What can be wrong with a value or a body that a client sends: the `type` and `msg` of each error in a 422 response.

use std::borrow::Cow;

use crate::error::Problem;

/// The list is longer than `max`.
pub fn too_many_items(max: usize) -> Problem {
    value_error(format!("Must have at most {max} items"))
}

/// A required value is absent.
pub fn missing() -> Problem {
    problem("missing", "Field required")
}

/// A value that must be single came more than once.
pub fn sent_twice() -> Problem {
    value_error("Must be sent only once")
}

/// A text is not UTF-8.
pub fn not_utf8() -> Problem {
    value_error("Must be UTF-8")
}

/// The parameter cannot be combined with `others`.
pub fn not_beside(others: &str) -> Problem {
    value_error(format!("Must not be given beside {others}"))
}

/// The value is something other than a string.
pub fn not_a_string() -> Problem {
    problem("string_type", "Must be a string")
}

/// The value is something other than a list of strings.
pub fn not_a_list() -> Problem {
    value_error("Must be a list of strings")
}

/// The body is not UTF-8 or not JSON.
pub fn not_json() -> Problem {
    problem("json_invalid", "Invalid JSON")
}

/// The body is JSON, but not an object.
pub fn not_an_object() -> Problem {
    value_error("Must be an object")
}

/// The body is not `multipart/form-data`, or it ends before its closing delimiter.
pub fn not_multipart() -> Problem {
    value_error("Must be multipart/form-data, complete, with its boundary in Content-Type")
}

/// The value is something other than a boolean.
pub fn not_a_boolean() -> Problem {
    problem("bool_type", "Must be a boolean")
}

/// The value is something other than a whole number of 64 bits.
pub fn not_an_integer() -> Problem {
    problem("int_parsing", "Must be an integer")
}

/// A problem of the general type `value_error`, for which no other type fits.
pub fn value_error(message: impl Into<Cow<'static, str>>) -> Problem {
    problem("value_error", message)
}

/// A problem with its `type`, by which programs recognise it, and its message for people.
pub fn problem(kind: &'static str, message: impl Into<Cow<'static, str>>) -> Problem {
    Problem { kind, message: message.into() }
}
