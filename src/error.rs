//! Every way in which a request can fail, named by its meaning. The table in `explanation` gives each its HTTP status,
//! a word for programs, the message that people see, and a hint about what they can do.

mod explanation;
#[cfg(feature = "extras")]
pub mod partial;
mod table;

use std::borrow::Cow;

pub use explanation::{Error, Forbidden, TokenProblem};

/// The part of a request in which a bad field was found: the first element of `loc` in a 422.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldLocation {
    /// The JSON, form or multipart body.
    Body,
    /// The parameters after `?`.
    Query,
    /// An id in the path.
    Path,
    Header,
}

impl FieldLocation {
    /// The word that clients see.
    pub fn name(self) -> &'static str {
        match self {
            FieldLocation::Body => "body",
            FieldLocation::Query => "query",
            FieldLocation::Path => "path",
            FieldLocation::Header => "header",
        }
    }
}

/// What is wrong with one value: the `type` and the `msg` of one entry in the body of a 422.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A word for programs, such as `string_too_short`, from a closed list.
    pub kind: &'static str,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

/// The message of the problem of an idempotency key that belongs to another request. The reason depends on it.
pub const KEY_REUSED: &str = "Idempotency-Key was used for another request";

/// A problem, and the field in which it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub location: FieldLocation,
    /// The field's name. `None` if the problem is with the body as a whole.
    pub field: Option<&'static str>,
    pub problem: Problem,
}

impl FieldError {
    /// The error of a request whose body as a whole has this problem.
    pub fn of_body(problem: Problem) -> Error {
        Error::Invalid(vec![FieldError { location: FieldLocation::Body, field: None, problem }])
    }
}

/// A field that no two accounts may share. Values are compared without regard to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    Username,
    Email,
}

impl TokenProblem {
    /// The `error_description` of `WWW-Authenticate` (RFC 6750, 3). It depends only on the token and its session, so it
    /// tells nothing to anyone who does not have the token.
    pub fn description(self) -> &'static str {
        match self {
            TokenProblem::NotOurs => "malformed or not ours",
            TokenProblem::NotAccess => "not an access token",
            TokenProblem::NotRefresh => "not a refresh token",
            TokenProblem::Expired => "expired",
            TokenProblem::SessionEnded | TokenProblem::PersonalTokenEnded => "session ended",
        }
    }
}

impl Error {
    /// What is wrong with the token of the request, if the request was refused because of it.
    pub fn token_problem(&self) -> Option<TokenProblem> {
        match self {
            Error::InvalidToken(problem) => Some(*problem),
            // All sessions of an account end when it is deleted or deactivated.
            Error::UserNotUsable => Some(TokenProblem::SessionEnded),
            _ => None,
        }
    }

    /// The cause, for the operator's log. Clients never see that of an unexpected error.
    pub fn cause(&self) -> Cow<'_, str> {
        match self {
            Error::Internal(cause) => cause.into(),
            Error::Unavailable => {
                "the database cannot be reached, no connection or turn was free in time, or a stop ended the \
                 wait"
                    .into()
            }
            Error::StoreUnavailable => "the store does not serve contents".into(),
            other => other.message(),
        }
    }

    /// The error of a request that may succeed after so many seconds.
    pub fn wait(seconds: i64) -> Error {
        Error::RateLimited { retry_after: seconds.max(1).cast_unsigned(), login: false }
    }

    /// Turns [`Error::Taken`] into [`Error::TakenAtRegistration`]; other errors stay as they are.
    pub fn at_registration(self) -> Error {
        match self {
            Error::Taken(unique) => Error::TakenAtRegistration(unique),
            other => other,
        }
    }
}
