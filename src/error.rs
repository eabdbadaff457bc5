//! Every way a request can fail, named by meaning, and the one table that turns it into a status,
//! a code and the text clients see (contract, 4).

use std::borrow::Cow;

/// Where in a request a bad field was found: the first element of `loc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The JSON or form body.
    Body,
    /// The query's parameters.
    Query,
    /// The path's ids.
    Path,
}

impl Place {
    /// The word clients see.
    pub fn name(self) -> &'static str {
        match self {
            Place::Body => "body",
            Place::Query => "query",
            Place::Path => "path",
        }
    }
}

/// What is wrong with one value: the `type` and `msg` of a 422.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Machine-readable kind, one of the contract's list.
    pub kind: &'static str,
    /// Text for people.
    pub message: Cow<'static, str>,
}

/// A problem and where it stands; `field` is `None` when the whole body is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Part of the request.
    pub place: Place,
    /// Name of the field.
    pub field: Option<&'static str>,
    /// What is wrong with it.
    pub problem: Problem,
}

/// A field that only one account may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    /// The username, without regard to case.
    Username,
    /// The e-mail address, without regard to case.
    Email,
}

/// A failed request.
#[derive(Debug)]
pub enum Error {
    /// A head that breaks the rules of HTTP/1.1.
    BadRequest,
    /// A head that is too long, or has too many headers.
    HeadersTooLarge,
    /// A head that did not end in time.
    HeadTooSlow,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    VersionNotSupported,
    /// An `Expect` other than `100-continue`.
    ExpectationFailed,
    /// No such path.
    RouteNotFound,
    /// The path exists, the method does not; the methods it has.
    MethodNotAllowed(String),
    /// No `Authorization` header, no token.
    AuthenticationRequired,
    /// `Authorization` with a scheme other than `Bearer`.
    InvalidScheme,
    /// `Authorization` that is not two words.
    InvalidAuthorization,
    /// A token that is forged, expired, of the wrong type, or whose session has ended.
    InvalidToken,
    /// A good token of an account that is gone or switched off.
    UserNotUsable,
    /// `X-API-Key` is missing, at an export or elsewhere; the text.
    ApiKeyMissing(&'static str),
    /// `X-API-Key` is none of the configured keys.
    ApiKeyInvalid,
    /// API keys are asked for, but none is configured.
    ApiKeyMisconfigured,
    /// The request's role is not `admin`.
    AdminRequired,
    /// No such account, or a deleted one.
    UserNotFound,
    /// The change would leave no active admin.
    LastAdmin,
    /// The endpoint is switched off.
    FeatureOff,
    /// An export of more rows than allowed.
    ExportTooLarge,
    /// `offset` below 0.
    OffsetOutOfRange,
    /// `limit` below 1 or above 100.
    LimitOutOfRange,
    /// Wrong name or password.
    BadCredentials,
    /// The right password of an account that is switched off.
    InactiveAccount,
    /// The current password given with a change is wrong.
    WrongCurrentPassword,
    /// A reset token that is unknown, expired or used.
    InvalidResetToken,
    /// Registration with a name or address somebody has (400, as spec.md asks).
    TakenAtRegistration(Unique),
    /// Any other change to a name or address somebody has (409).
    Taken(Unique),
    /// Fields that break the rules, all of them.
    Invalid(Vec<FieldError>),
    /// The body is larger than the endpoint reads.
    BodyTooLarge,
    /// A file larger than this many bytes, the limit.
    FileTooLarge(u64),
    /// A file of a type that is not taken, or that is none of its declared type.
    TypeNotAllowed,
    /// A quota or the disk is full.
    StorageFull,
    /// No such file.
    FileNotFound,
    /// The file is somebody else's.
    NotPermitted,
    /// None of the range lies within a file of this many bytes.
    RangeNotSatisfiable(u64),
    /// The body ended before its announced length.
    BodyCutShort,
    /// A body that breaks the rules of the chunked coding.
    BodyMalformed,
    /// The body came too slowly.
    BodyTooSlow,
    /// An empty token bucket; whole seconds until a request is allowed again.
    RateLimited {
        /// Value of `Retry-After`.
        retry_after: u64,
        /// Login has its own text.
        login: bool,
    },
    /// The database cannot be reached, or nothing it needs was free in time.
    Unavailable,
    /// The database was lost while it made a change, which it may have made or not.
    OutcomeUnknown,
    /// A statement took longer than allowed.
    TimedOut,
    /// Anything unexpected: logged with the request id, never shown.
    Internal(String),
}

impl Error {
    /// Status, `error_code` and message.
    pub fn parts(&self) -> (u16, &'static str, Cow<'static, str>) {
        use Error::*;
        use Unique::*;
        let (status, code, message) = match self {
            FileTooLarge(limit) => return (413, "PAYLOAD_TOO_LARGE", over_limit(*limit).into()),
            BadRequest => (400, "BAD_REQUEST", "Malformed request"),
            HeadersTooLarge => (431, "HEADERS_TOO_LARGE", "Request headers too large"),
            HeadTooSlow => (408, "REQUEST_TIMEOUT", "Request headers came too slowly"),
            VersionNotSupported => {
                (505, "HTTP_VERSION_NOT_SUPPORTED", "HTTP version not supported")
            }
            ExpectationFailed => (417, "EXPECTATION_FAILED", "Expectation failed"),
            RouteNotFound => (404, "NOT_FOUND", "Not Found"),
            MethodNotAllowed(_) => (405, "METHOD_NOT_ALLOWED", "Method Not Allowed"),
            AuthenticationRequired => (401, "UNAUTHORIZED", "Authentication required"),
            InvalidScheme => (401, "UNAUTHORIZED", "Invalid authentication scheme"),
            InvalidAuthorization => (401, "UNAUTHORIZED", "Invalid authorization header format"),
            InvalidToken => (401, "UNAUTHORIZED", "Invalid token"),
            UserNotUsable => (401, "UNAUTHORIZED", "User not found or inactive"),
            ApiKeyMissing(message) => (401, "UNAUTHORIZED", *message),
            ApiKeyInvalid => (401, "UNAUTHORIZED", "Invalid API key"),
            ApiKeyMisconfigured => (500, "INTERNAL_ERROR", "API key validation misconfigured"),
            AdminRequired => (403, "FORBIDDEN", "Admin privileges required."),
            UserNotFound => (404, "NOT_FOUND", "User not found"),
            LastAdmin => (409, "CONFLICT", "At least one active admin is required"),
            FeatureOff => (404, "NOT_FOUND", "This feature is not available"),
            ExportTooLarge => (413, "PAYLOAD_TOO_LARGE", "Export too large"),
            OffsetOutOfRange => (400, "BAD_REQUEST", "Offset must be >= 0"),
            LimitOutOfRange => (400, "BAD_REQUEST", "Limit must be between 1 and 100"),
            BadCredentials => (401, "UNAUTHORIZED", "Invalid username or password"),
            InactiveAccount => (403, "FORBIDDEN", "Inactive or deleted user."),
            WrongCurrentPassword => (400, "BAD_REQUEST", "Current password is incorrect"),
            InvalidResetToken => (400, "BAD_REQUEST", "Invalid or expired token"),
            TakenAtRegistration(Username) => (400, "BAD_REQUEST", "Username already exists"),
            TakenAtRegistration(Email) => (400, "BAD_REQUEST", "Email already exists"),
            Taken(Username) => (409, "CONFLICT", "Username already exists"),
            Taken(Email) => (409, "CONFLICT", "Email already exists"),
            Invalid(_) => (422, "VALIDATION_ERROR", "Validation failed"),
            BodyTooLarge => (413, "PAYLOAD_TOO_LARGE", "Request body too large"),
            TypeNotAllowed => (415, "UNSUPPORTED_MEDIA_TYPE", "File type not allowed"),
            StorageFull => (507, "STORAGE_QUOTA_EXCEEDED", "Storage quota exceeded"),
            FileNotFound => (404, "NOT_FOUND", "File not found"),
            NotPermitted => (403, "FORBIDDEN", "Not enough permissions"),
            RangeNotSatisfiable(_) => (416, "RANGE_NOT_SATISFIABLE", "Range not satisfiable"),
            BodyCutShort => (400, "BAD_REQUEST", "Request body ended early"),
            BodyMalformed => (400, "BAD_REQUEST", "Malformed request body"),
            BodyTooSlow => (408, "REQUEST_TIMEOUT", "Request body came too slowly"),
            RateLimited { login: true, .. } => {
                (429, "RATE_LIMITED", "Too many login attempts. Please try again later.")
            }
            RateLimited { .. } => (429, "RATE_LIMITED", "Rate limit exceeded"),
            Unavailable | OutcomeUnknown => {
                (503, "SERVICE_UNAVAILABLE", "Service temporarily unavailable")
            }
            TimedOut => (504, "TIMEOUT", "Request timed out"),
            Internal(_) => (500, "INTERNAL_ERROR", "Internal server error"),
        };
        (status, code, message.into())
    }

    /// The same failure as registration words it.
    pub fn at_registration(self) -> Error {
        match self {
            Error::Taken(unique) => Error::TakenAtRegistration(unique),
            other => other,
        }
    }
}

/// In MB where the limit is whole ones, else in bytes (contract, 7).
fn over_limit(limit: u64) -> String {
    match limit % 1_048_576 {
        0 => format!("File size exceeds maximum limit ({}MB)", limit / 1_048_576),
        _ => format!("File size exceeds maximum limit ({limit} bytes)"),
    }
}
