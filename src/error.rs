//! Every way in which a request can fail, named by its meaning, and the one table that gives each its HTTP
//! status and the text that clients see.

use std::borrow::Cow;

/// The part of a request in which a bad field was found: the first element of `loc` in a 422.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The JSON, form or multipart body.
    Body,
    /// The parameters after `?`.
    Query,
    /// An id in the path.
    Path,
}

impl Place {
    /// The word that clients see.
    pub fn name(self) -> &'static str {
        match self {
            Place::Body => "body",
            Place::Query => "query",
            Place::Path => "path",
        }
    }
}

/// What is wrong with one value: the `type` and the `msg` of an entry of a 422.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// One of a closed list of words for programs, such as `string_too_short`.
    pub kind: &'static str,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

/// A problem together with where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub place: Place,
    /// The field's name; `None` where the problem is with the whole body.
    pub field: Option<&'static str>,
    pub problem: Problem,
}

impl FieldError {
    /// A problem with the body as a whole, as a request that failed.
    pub fn of_body(problem: Problem) -> Error {
        Error::Invalid(vec![FieldError { place: Place::Body, field: None, problem }])
    }
}

/// A field whose value only one account may hold, compared without regard to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    Username,
    Email,
}

/// A failed request. What clients are told stands in [`Error::status`] and [`Error::message`].
#[derive(Debug)]
pub enum Error {
    /// The request line or the headers break the rules of HTTP/1.1 (RFC 9112).
    BadRequest,
    /// The request line and headers are longer, or more, than the server reads.
    HeadersTooLarge,
    /// The headers were not complete in time.
    HeadTooSlow,
    /// The request's version is neither HTTP/1.0 nor HTTP/1.1.
    VersionNotSupported,
    /// `Expect` asks for something other than `100-continue`.
    ExpectationFailed,
    /// No endpoint has this path.
    RouteNotFound,
    /// The path exists, but not with this method. Holds the value of `Allow`.
    MethodNotAllowed(String),
    /// The request carries no token, and the endpoint needs one.
    AuthenticationRequired,
    /// `Authorization` names a scheme other than `Bearer`.
    InvalidScheme,
    /// `Authorization` is not exactly a scheme and a token.
    InvalidAuthorization,
    /// The token is forged, expired or of the wrong type, or its session has ended.
    InvalidToken,
    /// The token is good, but its account is deleted or switched off.
    UserNotUsable,
    /// `X-API-Key` is missing. Holds the text, because exports have one of their own.
    ApiKeyMissing(&'static str),
    /// `X-API-Key` is none of the configured keys.
    ApiKeyInvalid,
    /// The settings ask for an API key, but configure none.
    ApiKeyMisconfigured,
    /// The role of the request is not `admin`.
    AdminRequired,
    /// There is no such account, or it is deleted.
    UserNotFound,
    /// The change would leave the service without an active administrator.
    LastAdmin,
    /// The settings switch this endpoint off.
    FeatureOff,
    /// The export has more rows than the settings allow.
    ExportTooLarge,
    /// The parameter `offset` is negative.
    OffsetOutOfRange,
    /// The parameter `limit` is not within 1 and 100.
    LimitOutOfRange,
    /// There is no account of that name, or its password is another one: the two must look the same.
    BadCredentials,
    /// The password is right, but the account is switched off.
    InactiveAccount,
    /// The current password that must accompany a change is wrong.
    WrongCurrentPassword,
    /// The password reset token is unknown, expired or used.
    InvalidResetToken,
    /// A new account asks for a username or address that is taken. A 400 at registration, not a 409.
    TakenAtRegistration(Unique),
    /// Any other change asks for a username or address that is taken.
    Taken(Unique),
    /// All fields of the request that break a rule.
    Invalid(Vec<FieldError>),
    /// The body is longer than the endpoint reads.
    BodyTooLarge,
    /// The uploaded file is longer than the limit, which is given in bytes.
    FileTooLarge(u64),
    /// The file's type is not accepted, or its first bytes show another type than the declared one.
    TypeNotAllowed,
    /// The file does not fit into a quota, or the disk is full.
    StorageFull,
    /// There is no such file.
    FileNotFound,
    /// The file belongs to somebody else.
    NotPermitted,
    /// The requested range begins after the end of the file, whose size is given in bytes.
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
        /// Whether this is the login endpoint, which has a text of its own.
        login: bool,
    },
    /// The database cannot be reached, or a scarce resource was not free in time. Nothing was changed.
    Unavailable,
    /// The connection to the database broke during a change, which may or may not have been made.
    OutcomeUnknown,
    /// A statement took longer than its limit.
    TimedOut,
    /// Anything unexpected. The cause is logged with the request id and never shown to clients.
    Internal(String),
}

impl Error {
    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.status_and_message().0
    }

    /// The text that clients see.
    pub fn message(&self) -> Cow<'static, str> {
        self.status_and_message().1
    }

    fn status_and_message(&self) -> (u16, Cow<'static, str>) {
        use Error::*;
        use Unique::*;
        let (status, message) = match self {
            FileTooLarge(limit) => return (413, file_too_large(*limit).into()),
            BadRequest => (400, "Malformed request"),
            HeadersTooLarge => (431, "Request headers too large"),
            HeadTooSlow => (408, "Request headers came too slowly"),
            VersionNotSupported => (505, "HTTP version not supported"),
            ExpectationFailed => (417, "Expectation failed"),
            RouteNotFound => (404, "Not Found"),
            MethodNotAllowed(_) => (405, "Method Not Allowed"),
            AuthenticationRequired => (401, "Authentication required"),
            InvalidScheme => (401, "Invalid authentication scheme"),
            InvalidAuthorization => (401, "Invalid authorization header format"),
            InvalidToken => (401, "Invalid token"),
            UserNotUsable => (401, "User not found or inactive"),
            ApiKeyMissing(message) => (401, *message),
            ApiKeyInvalid => (401, "Invalid API key"),
            ApiKeyMisconfigured => (500, "API key validation misconfigured"),
            AdminRequired => (403, "Admin privileges required."),
            UserNotFound => (404, "User not found"),
            LastAdmin => (409, "At least one active admin is required"),
            FeatureOff => (404, "This feature is not available"),
            ExportTooLarge => (413, "Export too large"),
            OffsetOutOfRange => (400, "Offset must be >= 0"),
            LimitOutOfRange => (400, "Limit must be between 1 and 100"),
            BadCredentials => (401, "Invalid username or password"),
            InactiveAccount => (403, "Inactive or deleted user."),
            WrongCurrentPassword => (400, "Current password is incorrect"),
            InvalidResetToken => (400, "Invalid or expired token"),
            TakenAtRegistration(Username) => (400, "Username already exists"),
            TakenAtRegistration(Email) => (400, "Email already exists"),
            Taken(Username) => (409, "Username already exists"),
            Taken(Email) => (409, "Email already exists"),
            Invalid(_) => (422, "Validation failed"),
            BodyTooLarge => (413, "Request body too large"),
            TypeNotAllowed => (415, "File type not allowed"),
            StorageFull => (507, "Storage quota exceeded"),
            FileNotFound => (404, "File not found"),
            NotPermitted => (403, "Not enough permissions"),
            RangeNotSatisfiable(_) => (416, "Range not satisfiable"),
            BodyCutShort => (400, "Request body ended early"),
            BodyMalformed => (400, "Malformed request body"),
            BodyTooSlow => (408, "Request body came too slowly"),
            RateLimited { login: true, .. } => {
                (429, "Too many login attempts. Please try again later.")
            }
            RateLimited { .. } => (429, "Rate limit exceeded"),
            Unavailable | OutcomeUnknown => (503, "Service temporarily unavailable"),
            TimedOut => (504, "Request timed out"),
            Internal(_) => (500, "Internal server error"),
        };
        (status, message.into())
    }

    /// The same failure as registration reports it.
    pub fn at_registration(self) -> Error {
        match self {
            Error::Taken(unique) => Error::TakenAtRegistration(unique),
            other => other,
        }
    }
}

/// Names the limit in MB (of 1,048,576 bytes) where it is a whole number of them, else in bytes.
fn file_too_large(limit: u64) -> String {
    match limit % 1_048_576 {
        0 => format!("File size exceeds maximum limit ({}MB)", limit / 1_048_576),
        _ => format!("File size exceeds maximum limit ({limit} bytes)"),
    }
}
