//! Every way in which a request can fail, named by its meaning. The table in `explanation` gives each its HTTP status,
//! a word for programs, the message that people see, and a hint about what they can do.

mod explanation;

use std::borrow::Cow;

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

    /// The error of a request whose header has this problem.
    pub fn of_header(name: &'static str, problem: Problem) -> Error {
        let (location, field) = (FieldLocation::Header, Some(name));
        Error::Invalid(vec![FieldError { location, field, problem }])
    }
}

/// A field that no two accounts may share. Values are compared without regard to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    Username,
    Email,
}

/// Why a token that a request carries is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenProblem {
    /// It is not well-formed, lacks a claim, is not valid yet, or was not signed here.
    NotOurs,
    /// It is well-formed and was signed here, but not as an access token.
    NotAccess,
    /// It is well-formed and was signed here, but not as a refresh token.
    NotRefresh,
    /// It was signed here, and was valid until it expired.
    Expired,
    /// Its session has ended, or all sessions of the account.
    SessionEnded,
    /// No personal access token like this is stored: it has expired, was ended, or never existed.
    PersonalTokenEnded,
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

/// Why a request is refused although its sender is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// The file belongs to another user and is not public.
    PrivateFile,
    /// The file belongs to another user, and the request would change it.
    ForeignFile,
    /// The request has a personal access token, which is not accepted for it.
    PersonalToken,
    /// The request has a personal access token, and would make, change or delete an administrator.
    AdminByPersonalToken,
    /// The request has a read-only personal access token, and is not a `GET`.
    ReadOnlyToken,
    /// The request has a personal access token of scope `upload`, and is no upload.
    UploadToken,
    /// An administrator would take their own second factor away, without the password and a code.
    OwnSecondFactor,
    /// The account is the development admin's.
    DevelopmentAdmin,
    /// Authentication is switched off, and a foreign web page may have sent the request.
    ForeignPage,
}

/// Why a request failed. [`Error::status`], [`Error::reason`], [`Error::message`] and [`Error::hint`] say what the
/// client is told.
#[derive(Debug, Clone)]
pub enum Error {
    /// The request line or the headers break the rules of HTTP/1.1 (RFC 9112).
    BadRequest,
    /// The request has more than one `Authorization` header.
    SecondAuthorization,
    /// The request line and headers are longer than the server accepts, or there are too many headers.
    HeadersTooLarge,
    /// The request line and headers did not arrive in time.
    HeadTooSlow,
    /// The HTTP version is neither 1.0 nor 1.1.
    VersionNotSupported,
    /// `Expect` asks for something other than `100-continue`.
    ExpectationFailed,
    /// No endpoint has this path.
    RouteNotFound {
        /// Whether the service has pages about its API.
        has_docs: bool,
    },
    /// The path has no endpoint for this method. Holds the value of the `Allow` header.
    MethodNotAllowed(String),
    /// The request carries no token, and the endpoint needs one.
    AuthenticationRequired,
    /// A request for new tokens carries no refresh token.
    RefreshTokenRequired,
    /// `Authorization` names a scheme other than `Bearer`.
    InvalidScheme,
    /// `Authorization` is not exactly a scheme and a token.
    InvalidAuthorization,
    /// The token is not valid, or no longer.
    InvalidToken(TokenProblem),
    /// The token is valid, but its account is deleted or inactive.
    UserNotUsable,
    /// `X-API-Key` is missing.
    ApiKeyMissing {
        /// Whether the endpoint is an export, for which the message is another one.
        is_export: bool,
    },
    /// `X-API-Key` is none of the configured keys.
    ApiKeyInvalid,
    /// The settings require an API key, but none is configured, so no key can be right.
    ApiKeyMisconfigured,
    /// The role of the signed-in user is not `admin`.
    AdminRequired,
    /// There is no such account, or it is deleted.
    UserNotFound,
    /// The password is right, and a code of the second factor is missing.
    SecondFactorRequired {
        /// Whether no code would help, because a hundred wrong ones came in a row.
        is_password_refused: bool,
    },
    /// The code of the second factor is wrong, or was used already.
    InvalidCode {
        /// Whether this is the login endpoint, whose status is another one.
        at_login: bool,
    },
    /// The account has a second factor already.
    SecondFactorEnabled,
    /// The account has no second factor, or none that can be confirmed.
    SecondFactorNotFound,
    /// The settings ask for a second factor of administrators, and this one has none.
    AdminSecondFactorRequired,
    /// The user has no such session, or it has ended.
    SessionNotFound,
    /// The user has no such personal access token, or it has ended.
    TokenNotFound,
    /// The user has as many personal access tokens as one user may have.
    TooManyTokens,
    /// There is no such link, or it has ended, or its file or the owner of that is gone or inactive. One variant stands
    /// for all, so that nobody learns which links there were.
    LinkNotFound,
    /// The same for a request that would open the link.
    LinkEnded {
        /// Whether a person is to read the response, in a browser.
        takes_html: bool,
    },
    /// The file has as many links as one file may have, or its owner as many as one user may.
    TooManyLinks,
    /// The change would leave the service without an active administrator.
    LastAdmin,
    /// The settings switch this endpoint off.
    FeatureOff,
    /// The export has more rows than the limit, which this holds.
    ExportTooLarge(u32),
    /// The parameter `offset` is negative.
    OffsetOutOfRange,
    /// The parameter `limit` is not between 1 and 100.
    LimitOutOfRange,
    /// The login name or the password is wrong. One variant stands for both, so that nobody learns which accounts
    /// exist.
    BadCredentials {
        /// Whether registrations wait until their addresses are confirmed, and so this may be one.
        may_wait: bool,
    },
    /// The password is right, but the account is inactive.
    InactiveAccount,
    /// A request that must be confirmed with the current password came with a wrong one, or without any.
    WrongCurrentPassword,
    /// The password reset token is forged, expired or already used.
    InvalidResetToken,
    /// The token of a mail about an address is not valid, or not any more, or belongs to another password. One variant
    /// stands for all, so that nobody learns which accounts exist.
    InvalidConfirmationToken,
    /// Registration asked for a username or e-mail address that is taken. This is a 400, unlike [`Error::Taken`].
    TakenAtRegistration(Unique),
    /// Any other request asked for a username or e-mail address that is taken.
    Taken(Unique),
    /// Fields of the request break rules. Holds all of them, so that a client can correct them at once.
    Invalid(Vec<FieldError>),
    /// The body is longer than the endpoint accepts. Holds the limit in bytes.
    BodyTooLarge(u64),
    /// The form of an upload is longer than the limit, and not because of its file.
    FormTooLarge {
        /// How many bytes the file may have.
        file: u64,
        /// How many all else may have.
        rest: u64,
    },
    /// The uploaded file is larger than the limit, which this holds in bytes, or the announced length of the upload
    /// leaves open whether it is.
    FileTooLarge(u64),
    /// The type that was declared for the file is not accepted.
    TypeNotAllowed {
        /// The declared type; where none is, the one that the content shows. `None` if it shows none either.
        found: Option<String>,
        /// The accepted types, separated by commas.
        accepted: String,
    },
    /// The file's first bytes show another type than the declared one.
    TypeContradicted { declared: String, recognised: &'static str },
    /// The body cannot be read, and names a content coding. None is decoded.
    EncodingNotSupported,
    /// The file would exceed a quota, or the disk is full.
    StorageFull,
    /// There is no such file.
    FileNotFound,
    /// The sender of the request may not do this.
    NotPermitted(Forbidden),
    /// The file has changed since the state that the request's conditions name.
    PreconditionFailed,
    /// What happened after a cursor is not known any more.
    ChangesForgotten,
    /// The requested range begins after the end of the file. Holds the file's size in bytes.
    RangeNotSatisfiable(u64),
    /// The connection ended before the body did.
    BodyCutShort,
    /// The body breaks the rules of the chunked transfer coding.
    BodyMalformed,
    /// The client sent the body too slowly.
    BodyTooSlow,
    /// A token bucket is empty.
    RateLimited {
        /// Seconds until a request is allowed again, at least 1: the value of `Retry-After`.
        retry_after: u64,
        /// Whether this is the login endpoint, which has a message of its own.
        login: bool,
    },
    /// The database cannot be reached, or no connection or turn (for a hash or a search) came in time. Nothing was
    /// changed.
    Unavailable,
    /// The store of contents cannot be reached, does not answer in time, or refuses a request. Nothing was changed.
    StoreUnavailable,
    /// The connection to the database broke during a write, so it is unknown whether the change was made.
    OutcomeUnknown,
    /// A database statement ran into its timeout.
    TimedOut,
    /// Anything unexpected. The cause is logged with the request id and never shown to clients.
    Internal(String),
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
