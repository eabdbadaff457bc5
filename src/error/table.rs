//! What makes the table of errors in `explanation.rs`.

use std::borrow::Cow;

/// What the client is told about an error.
pub struct Explanation {
    pub status: u16,
    pub reason: &'static str,
    pub message: Cow<'static, str>,
    /// Empty if there is none.
    pub hint: Cow<'static, str>,
}

/// A row of the table of errors.
pub fn row(
    status: u16,
    reason: &'static str,
    message: impl Into<Cow<'static, str>>,
    hint: impl Into<Cow<'static, str>>,
) -> Explanation {
    Explanation { status, reason, message: message.into(), hint: hint.into() }
}

/// Makes two things of a table of errors: the enum, and the function `explanation`, which returns what the client is
/// told. An entry is
///
/// ```text
/// /// what it means
/// Variant(value: Type) =>
///     row(status, "REASON", "message", "hint");
/// ```
///
/// with named fields in braces, or without any. The row may use the values.
macro_rules! errors {
    (
        $(#[$attribute:meta])+
        pub enum $enum:ident
        $(
            $(#[$meaning:meta])+
            $name:ident
            $(($value:ident: $type:ty))?
            $({ $($(#[$about:meta])* $field:ident: $field_type:ty,)+ })?
            => $row:expr;
        )+
    ) => {
        $(#[$attribute])+
        pub enum $enum {
            $($(#[$meaning])+ $name $(($type))? $({ $($(#[$about])* $field: $field_type,)+ })?,)+
        }

        impl $enum {
            #[allow(unused_variables, unused_doc_comments, reason = "rows need not tell all of an error")]
            fn explanation(&self) -> Explanation {
                match self {
                    $($(#[$meaning])+ $enum::$name $(($value))? $({ $($field),+ })? => $row,)+
                }
            }
        }
    };
}
pub(super) use errors;
