//! All errors in one table: what each of them means, its HTTP status, its reason, its message and its hint.

use std::borrow::Cow;

use super::table::{Explanation, errors, row};
use super::{FieldError, KEY_REUSED, Unique};

errors! {
    /// Why a token that a request carries is not accepted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TokenProblem

    /// It is not well-formed, lacks a claim, is not valid yet, or was not signed here.
    NotOurs => row(401, "INVALID_TOKEN", "Invalid token",
        "Send the token exactly as the service issued it, or sign in again.");
    /// It is well-formed and was signed here, but not as an access token.
    NotAccess => row(401, "NOT_AN_ACCESS_TOKEN", "Invalid token",
        "Send an access token. Only POST /api/v1/auth/refresh accepts a refresh token.");
    /// It is well-formed and was signed here, but not as a refresh token.
    NotRefresh => row(401, "NOT_A_REFRESH_TOKEN", "Invalid token",
        "Send the refresh token that came with the access token.");
    /// It was signed here, and was valid until it expired.
    Expired => row(401, "TOKEN_EXPIRED", "Invalid token",
        "Send the refresh token to POST /api/v1/auth/refresh, or sign in again.");
    /// Its session has ended, or all sessions of the account.
    SessionEnded => row(401, "SESSION_ENDED", "Invalid token", "Sign in again.");
    /// No personal access token like this is stored: it has expired, was ended, or never existed.
    PersonalTokenEnded => row(401, "PERSONAL_TOKEN_ENDED", "Invalid token",
        "Sign in and make another personal access token.");
}

errors! {
    /// Why a request is refused although its sender is known.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Forbidden

    /// The file belongs to another user and is not public.
    PrivateFile => row(403, "PRIVATE_FILE", "Not enough permissions",
        "Only its owner may read this file. The owner can make it public with `is_public`.");
    /// The account is younger than seven days, and registered itself.
    YoungAccount => row(403, "YOUNG_ACCOUNT", "Not enough permissions",
        "An account that registered itself can ask others for files once it is seven days old.");
    /// The file belongs to another user, and the request would change it.
    ForeignFile => row(403, "NOT_FILE_OWNER", "Not enough permissions",
        "Only its owner may change, share or delete this file.");
    /// The request has a personal access token, which is not accepted for it.
    PersonalToken => row(403, "PERSONAL_TOKEN_REFUSED", "Not enough permissions",
        "A personal access token is not accepted for this. Sign in and send the access token.");
    /// The request has a personal access token, and would make, change or delete an administrator.
    AdminByPersonalToken => row(403, "PERSONAL_TOKEN_CANNOT_CHANGE_ADMIN", "Not enough permissions",
        "A personal access token cannot make, change or delete an administrator. Send the access token.");
    /// The request has a read-only personal access token, and is not a `GET`.
    ReadOnlyToken => row(403, "READ_ONLY_TOKEN", "Not enough permissions",
        "The personal access token is read-only. Send another token.");
    /// The request has a personal access token of scope `upload`, and is no upload.
    UploadToken => row(403, "UPLOAD_TOKEN", "Not enough permissions",
        "The personal access token is accepted for uploads only. Send another token.");
    /// An administrator would take their own second factor away, without the password and a code.
    OwnSecondFactor => row(403, "OWN_SECOND_FACTOR", "Not enough permissions",
        "DELETE /api/v1/auth/second-factor disables your own, with the password and a code.");
    /// The account is the development admin's.
    DevelopmentAdmin => row(403, "DEVELOPMENT_ADMIN", "Not enough permissions",
        "Authentication is switched off, and the account that all requests have then cannot be changed.");
    /// Authentication is switched off, and a foreign web page may have sent the request.
    ForeignPage => row(403, "FOREIGN_PAGE", "Not enough permissions",
        "Authentication is switched off, so only this host's own pages are answered. \
         CLOAKROOM_CORS_ORIGINS can list more.");
}

errors! {
    /// Why a request failed. [`Error::status`], [`Error::reason`], [`Error::message`] and [`Error::hint`] say what the
    /// client is told.
    #[derive(Debug, Clone)]
    pub enum Error

    /// The request line or the headers break the rules of HTTP/1.1 (RFC 9112).
    BadRequest => row(400, "MALFORMED_REQUEST", "Malformed request",
        "Check the request line and the headers. The rules of HTTP/1.1 are in RFC 9112.");
    /// The request has more than one `Authorization` header.
    SecondAuthorization => row(400, "SECOND_AUTHORIZATION", "Malformed request",
        "There is more than one `Authorization` header. Send one.");
    /// The request line and headers are longer than the server accepts, or there are too many headers.
    HeadersTooLarge => row(431, "HEADERS_TOO_LARGE", "Request headers too large",
        "The request line and the headers may have at most 16384 bytes, and there may be at most 100 headers.");
    /// The request line and headers did not arrive in time.
    HeadTooSlow => row(408, "HEADERS_TOO_SLOW", "Request headers came too slowly",
        "Send the request line and the headers at once.");
    /// The HTTP version is neither 1.0 nor 1.1.
    VersionNotSupported => row(505, "VERSION_NOT_SUPPORTED", "HTTP version not supported", "Use HTTP/1.1 or HTTP/1.0.");
    /// `Expect` asks for something other than `100-continue`.
    ExpectationFailed => row(417, "EXPECTATION_FAILED", "Expectation failed",
        "The only expectation that is supported is 100-continue.");
    /// No endpoint has this path.
    RouteNotFound {
        /// Whether the service has pages about its API.
        has_docs: bool,
    } => row(404, "PATH_NOT_FOUND", "Not Found", match has_docs {
        true => "The endpoints of the API are below /api/v1; /docs describes them.",
        false => "The endpoints of the API are below /api/v1.",
    });
    /// The path has no endpoint for this method. Holds the value of the `Allow` header.
    MethodNotAllowed(methods: String) => row(405, "METHOD_NOT_ALLOWED", "Method Not Allowed",
        format!("This path accepts {methods}."));
    /// The request carries no token, and the endpoint needs one.
    AuthenticationRequired => row(401, "AUTHENTICATION_REQUIRED", "Authentication required",
        "Send a token from POST /api/v1/auth/login as `Authorization: Bearer <token>`.");
    /// A request for new tokens carries no refresh token.
    RefreshTokenRequired => row(401, "REFRESH_TOKEN_REQUIRED", "Authentication required",
        "Send the refresh token as `refresh_token` in the body, or as `Authorization: Bearer <token>`.");
    /// `Authorization` names a scheme other than `Bearer`.
    InvalidScheme => row(401, "INVALID_AUTHENTICATION_SCHEME", "Invalid authentication scheme",
        "Send the token as `Authorization: Bearer <token>`.");
    /// `Authorization` is not exactly a scheme and a token.
    InvalidAuthorization => row(401, "INVALID_AUTHORIZATION_HEADER", "Invalid authorization header format",
        "Send the token as `Authorization: Bearer <token>`.");
    /// The token is not valid, or no longer.
    InvalidToken(problem: TokenProblem) => problem.explanation();
    /// The token is valid, but its account is deleted or inactive.
    UserNotUsable => row(401, "ACCOUNT_NOT_USABLE", "User not found or inactive",
        "Sign in with another account, or ask an administrator.");
    /// `X-API-Key` is missing.
    ApiKeyMissing {
        /// Whether the endpoint is an export, for which the message is another one.
        is_export: bool,
    } => match is_export {
        true => row(401, "EXPORT_API_KEY_REQUIRED", "API key required for export endpoints",
            "Send the key as `X-API-Key: <key>`."),
        false => row(401, "API_KEY_REQUIRED", "API key is required", "Send the key as `X-API-Key: <key>`."),
    };
    /// `X-API-Key` is none of the configured keys.
    ApiKeyInvalid => row(401, "INVALID_API_KEY", "Invalid API key", "Ask the operator of the service for a valid key.");
    /// The settings require an API key, but none is configured, so no key can be right.
    ApiKeyMisconfigured => row(500, "API_KEY_MISCONFIGURED", "API key validation misconfigured", "");
    /// The role of the signed-in user is not `admin`.
    AdminRequired => row(403, "ADMIN_REQUIRED", "Admin privileges required.",
        "Sign in with an account whose role is admin.");
    /// There is no such account, or it is deleted.
    UserNotFound => row(404, "USER_NOT_FOUND", "User not found", "GET /api/v1/users lists all accounts.");
    /// The password is right, and a code of the second factor is missing.
    SecondFactorRequired {
        /// Whether no code would help, because a hundred wrong ones came in a row.
        is_password_refused: bool,
    } => match is_password_refused {
        false => row(401, "SECOND_FACTOR_REQUIRED", "Second factor required",
            "Send the six digits of the authenticator app, or a recovery code: `code` beside a password, or `otp`."),
        true => row(401, "TOO_MANY_WRONG_CODES", "Second factor required",
            "Too many wrong codes were sent with this password. Reset the password, and then send a code."),
    };
    /// The code of the second factor is wrong, or was used already.
    InvalidCode {
        /// Whether this is the login endpoint, whose status is another one.
        at_login: bool,
    } => row(if *at_login { 401 } else { 400 }, "SECOND_FACTOR_INVALID", "Invalid code",
        "Each code works once. Wait for the next one, and check the clock of the device that shows it.");
    /// The account has a second factor already.
    SecondFactorEnabled => row(409, "SECOND_FACTOR_ENABLED", "Second factor already enabled",
        "DELETE /api/v1/auth/second-factor disables it.");
    /// The account has no second factor, or none that can be confirmed.
    SecondFactorNotFound => row(404, "SECOND_FACTOR_NOT_FOUND", "Second factor not found",
        "POST /api/v1/auth/second-factor begins one, which must be confirmed within 15 minutes.");
    /// The settings ask for a second factor of administrators, and this one has none.
    AdminSecondFactorRequired => row(403, "ADMIN_SECOND_FACTOR_REQUIRED", "Second factor required",
        "Administrators need one here: set it up in your account first.");
    /// The user has no such session, or it has ended.
    SessionNotFound => row(404, "SESSION_NOT_FOUND", "Session not found", "GET /api/v1/auth/sessions lists them.");
    /// The user has no such personal access token, or it has ended.
    TokenNotFound => row(404, "TOKEN_NOT_FOUND", "Token not found",
        "GET /api/v1/auth/tokens lists your personal access tokens.");
    /// The user has as many personal access tokens as one user may have.
    TooManyTokens => row(409, "TOO_MANY_TOKENS", "Too many tokens",
        "End one that is no longer needed with DELETE /api/v1/auth/tokens/{token_id}.");
    /// No file of the user lies in the folder or below it.
    FolderNotFound => row(404, "FOLDER_NOT_FOUND", "Folder not found", "A folder is there while a file is in it.");
    /// There is no such link, it has ended, or its file or owner is gone or inactive: nobody learns which there were.
    LinkNotFound => row(404, "LINK_NOT_FOUND", "Link not found",
        "It may have expired or been ended. Its file's owner can make another one.");
    /// The same for a request that would open the link.
    LinkEnded {
        /// Whether a person is to read the response, in a browser.
        takes_html: bool,
    } => Error::LinkNotFound.explanation();
    /// The file has as many links as one file may have, or its owner as many as one user may.
    TooManyLinks => row(409, "TOO_MANY_LINKS", "Too many links",
        "End one that is no longer needed with DELETE /api/v1/links/{link_id}.");
    /// An inactive account is sent no link to choose a password.
    RecipientInactive => row(409, "USER_INACTIVE", "User is inactive", "Activate the account first.");
    /// The change would leave the service without an active administrator.
    LastAdmin => row(409, "LAST_ADMIN", "At least one active admin is required",
        "Make another active account an administrator first.");
    /// The settings switch this endpoint off.
    FeatureOff => row(404, "FEATURE_OFF", "This feature is not available", "");
    /// The export has more rows than the limit, which this holds.
    ExportTooLarge(limit: u32) => row(413, "EXPORT_TOO_LARGE", "Export too large",
        format!("An export has at most {limit} rows. Leave some out with a filter."));
    /// The archive would have more files than one may have.
    TooManyFiles => row(413, "TOO_MANY_FILES", "Too many files",
        "An archive has at most 10,000 files: ask for the folders in it one by one.");
    /// The parameter `offset` is negative.
    OffsetOutOfRange => row(400, "OFFSET_OUT_OF_RANGE", "Offset must be >= 0", "");
    /// The parameter `limit` is not between 1 and 100.
    LimitOutOfRange => row(400, "LIMIT_OUT_OF_RANGE", "Limit must be between 1 and 100", "");
    /// The login name or the password is wrong. One variant stands for both, so nobody learns which accounts exist.
    BadCredentials {
        /// Whether registrations wait until their addresses are confirmed, and so this may be one.
        may_wait: bool,
    } => row(401, "BAD_CREDENTIALS", "Invalid username or password", match may_wait {
        false => "Check both. In a password, upper and lower case are different.",
        true => "Check both. If you have just registered, open the link in the mail first.",
    });
    /// The password is right, but the account is inactive.
    InactiveAccount => row(403, "ACCOUNT_INACTIVE", "Inactive or deleted user.",
        "Ask an administrator to activate the account.");
    /// A request that must be confirmed with the current password came with a wrong one, or without any.
    WrongCurrentPassword => row(400, "WRONG_PASSWORD", "Current password is incorrect",
        "Send the password that the account has now as `current_password`.");
    /// The password reset token is forged, expired or already used.
    InvalidResetToken => row(400, "INVALID_RESET_TOKEN", "Invalid or expired token",
        "A token works once and expires. POST /api/v1/auth/request-password-reset sends another one.");
    /// The token of a mail about an address is not valid, or not any more, or belongs to another password. One variant
    /// stands for all, so that nobody learns which accounts exist.
    InvalidConfirmationToken => row(400, "INVALID_CONFIRMATION_TOKEN", "Invalid or expired token",
        "Check the password. A token works once and expires after two days. If several mails came, a later one may \
         be the right one; if none does, register or ask for the address again.");
    /// Registration asked for a username or e-mail address that is taken. This is a 400, unlike [`Error::Taken`].
    TakenAtRegistration(unique: Unique) => match unique {
        Unique::Username => Explanation { status: 400, ..Error::Taken(*unique).explanation() },
        Unique::Email => row(400, "EMAIL_TAKEN", "Email already exists",
            "Sign in if the account is yours. Otherwise use another address."),
    };
    /// Any other request asked for a username or e-mail address that is taken.
    Taken(unique: Unique) => match unique {
        Unique::Username => row(409, "USERNAME_TAKEN", "Username already exists",
            "Choose another one. Upper and lower case make no difference."),
        Unique::Email => row(409, "EMAIL_TAKEN", "Email already exists", "Use another address."),
    };
    /// Another account has the identity.
    IdentityInUse => row(409, "IDENTITY_IN_USE", "Identity already in use",
        "Another account has it. Sign in with that, and end it there.");
    /// The account has another identity.
    IdentityPresent => row(409, "IDENTITY_PRESENT", "Account already has an identity",
        "DELETE /api/v1/auth/oidc ends it.");
    /// The account has no identity that could be ended.
    IdentityNotFound => row(404, "IDENTITY_NOT_FOUND", "No identity", "");
    /// The only way to sign in to the account would end.
    PasswordMissing => row(409, "PASSWORD_MISSING", "The account has no password",
        "Choose one first: POST /api/v1/auth/request-password-reset sends a link for that.");
    /// No account has the identity that was proven, and none is made for it.
    NoAccount => row(404, "NO_ACCOUNT", "No account has this identity",
        "Sign in in another way and join it, or ask an administrator for an account.");
    /// An account is to be made, and the provider does not say that it has confirmed an e-mail address.
    EmailNotVerified => row(409, "EMAIL_NOT_VERIFIED", "The provider confirms no e-mail address", "Confirm it there.");
    /// An account is to be made, and the settings admit other addresses only.
    ForeignDomain => row(403, "FOREIGN_DOMAIN", "Not enough permissions", "Ask an administrator for an account.");
    /// The code of a sign-in by the OpenID provider is not good, or proves less than it must or another identity.
    InvalidProviderCode => row(400, "INVALID_CODE", "Invalid or expired code", "Sign in at the provider anew.");
    /// The code is good, but of a sign-in at the provider that may be an old one, or another person's at this browser.
    StaleProviderCode => row(400, "CODE_NOT_FRESH", "Invalid or expired code", "Start with again=1.");
    /// The settings let only administrators sign in with a password. Holds the name of the provider.
    ProviderRequired(name: String) => row(403, "PROVIDER_REQUIRED", format!("Sign in with {name}"),
        "The console begins that.");
    /// The OpenID provider cannot be reached, does not answer in time or as it must, or refuses this service.
    ProviderUnavailable => row(503, "PROVIDER_UNAVAILABLE", "Sign-in provider is not available",
        "Try again in a few seconds.");
    /// Fields of the request break rules. Holds all of them, so that a client can correct them at once.
    Invalid(errors: Vec<FieldError>) => match errors {
        _ if errors.iter().any(|error| error.problem.kind == "json_invalid") => row(422, "INVALID_JSON",
            "Validation failed", r#"Send a JSON object in UTF-8, such as {"name": "value"}."#),
        _ if errors.iter().any(|error| error.problem.message == KEY_REUSED) => row(422, "KEY_REUSED",
            "Validation failed", "Send another key with another request. A key belongs to one upload for a day."),
        _ => row(422, "VALIDATION_FAILED", "Validation failed", ""),
    };
    /// The body is longer than the endpoint accepts. Holds the limit in bytes.
    BodyTooLarge(limit: u64) => row(413, "BODY_TOO_LARGE", "Request body too large",
        format!("The body may have at most {limit} bytes."));
    /// The form of an upload is longer than the limit, and not because of its file.
    FormTooLarge {
        /// How many bytes the file may have.
        file: u64,
        /// How many all else may have.
        rest: u64,
    } => row(413, "FORM_TOO_LARGE", "Request body too large",
        format!("The form may have at most {} bytes: {file} for the file, and {rest} for all else.",
            file.saturating_add(*rest)));
    /// The uploaded file is larger than the limit, which this holds in bytes, or the announced length of the upload
    /// leaves open whether it is.
    FileTooLarge(limit: u64) => row(413, "FILE_TOO_LARGE", file_too_large(*limit),
        format!("The file may have at most {limit} bytes."));
    /// The type that was declared for the file is not accepted.
    TypeNotAllowed {
        /// The declared type; where none is, the one that the content shows. `None` if it shows none either.
        found: Option<String>,
        /// The accepted types, separated by commas.
        accepted: String,
    } => row(415, "TYPE_NOT_ALLOWED", "File type not allowed", match found {
        Some(name) => format!("The file is of the type `{name}`. Accepted are {accepted}."),
        None => format!("The file declares no type, and its content shows none. Accepted are {accepted}."),
    });
    /// The file's first bytes show another type than the declared one.
    TypeContradicted {
        declared: String,
        recognised: &'static str,
    } => row(415, "TYPE_CONTRADICTED", "File type not allowed",
        format!("The file was declared as `{declared}`, but its first bytes are those of `{recognised}`."));
    /// The body cannot be read, and names a content coding. None is decoded.
    EncodingNotSupported => row(415, "CONTENT_ENCODING", "Content encoding is not supported",
        "Send the body as it is, without Content-Encoding.");
    /// The file would exceed a quota, or the disk is full.
    StorageFull => row(507, "STORAGE_FULL", "Storage quota exceeded",
        "Files that are no longer needed can be deleted, and the operator can be asked for more space.");
    /// An upload that comes in several requests cannot go on like this.
    #[cfg(feature = "extras")]
    Partial(error: super::partial::PartialError) => error.explain();
    /// There is no such file.
    FileNotFound => row(404, "FILE_NOT_FOUND", "File not found", "GET /api/v1/uploads lists your files.");
    /// The sender of the request may not do this.
    NotPermitted(reason: Forbidden) => reason.explanation();
    /// The file has changed since the state that the request's conditions name.
    PreconditionFailed => row(412, "PRECONDITION_FAILED", "Precondition failed",
        "The file is not in the state that the request names. Read it again, then repeat the change.");
    /// What happened after a cursor is not known any more.
    ChangesForgotten => row(410, "GONE", "Changes are no longer known",
        "Begin anew without `after`: that lists all files that are there.");
    /// The requested range begins after the end of the file. Holds the file's size in bytes.
    RangeNotSatisfiable(length: u64) => row(416, "RANGE_NOT_SATISFIABLE", "Range not satisfiable",
        format!("The file has {length} bytes, of which the first is number 0."));
    /// The connection ended before the body did.
    BodyCutShort => row(400, "BODY_CUT_SHORT", "Request body ended early",
        "Keep the connection open until the whole body is sent. Content-Length must be its exact size.");
    /// The body breaks the rules of the chunked transfer coding.
    BodyMalformed => row(400, "MALFORMED_BODY", "Malformed request body",
        "Check the chunks of the body. Their rules are in RFC 9112, section 7.1.");
    /// The client sent the body too slowly.
    BodyTooSlow => row(408, "BODY_TOO_SLOW", "Request body came too slowly",
        "Send the body at 4096 bytes a second or faster.");
    /// A token bucket is empty.
    RateLimited {
        /// Seconds until a request is allowed again, at least 1: the value of `Retry-After`.
        retry_after: u64,
        /// Whether this is the login endpoint, which has a message of its own.
        login: bool,
    } => match login {
        true => row(429, "LOGIN_RATE_LIMITED", "Too many login attempts. Please try again later.",
            try_again(*retry_after)),
        false => row(429, "RATE_LIMITED", "Rate limit exceeded", try_again(*retry_after)),
    };
    /// The database cannot be reached, or no connection or permit came in time. Nothing was changed.
    Unavailable => row(503, "UNAVAILABLE", "Service temporarily unavailable", "Try again in a few seconds.");
    /// The store of contents cannot be reached, does not answer in time, or refuses a request. Nothing was changed.
    StoreUnavailable => Error::Unavailable.explanation();
    /// The connection to the database broke during a write, so it is unknown whether the change was made.
    OutcomeUnknown => row(503, "OUTCOME_UNKNOWN", "Service temporarily unavailable",
        "Find out whether the change was made before you send the request again.");
    /// A database statement ran into its timeout.
    TimedOut => row(504, "TIMED_OUT", "Request timed out", "");
    /// Anything unexpected. The cause is logged with the request id and never shown to clients.
    Internal(cause: String) => row(500, "INTERNAL_ERROR", "Internal server error", "");
}

impl Error {
    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.explanation().status
    }

    /// The word by which programs recognise the error. It never changes, unlike messages and hints. Errors that a
    /// program handles in the same way share one, such as the two statuses of a taken name.
    pub fn reason(&self) -> &'static str {
        self.explanation().reason
    }

    /// The sentence that clients see.
    pub fn message(&self) -> Cow<'static, str> {
        self.explanation().message
    }

    /// Whole sentences that stand beside the message and tell the sender of the request how to go on. `None` if the
    /// message says enough, or if the sender can do nothing.
    ///
    /// A hint depends only on the request and on limits that the service tells everybody. So it reveals neither whether
    /// an account exists nor anything internal.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        Some(self.explanation().hint).filter(|hint| !hint.is_empty())
    }
}

/// States the limit in MB of 1,048,576 bytes if it is a whole number of them, otherwise in bytes.
fn file_too_large(limit: u64) -> String {
    match limit % 1_048_576 {
        0 => format!("File size exceeds maximum limit ({}MB)", limit / 1_048_576),
        _ => format!("File size exceeds maximum limit ({limit} bytes)"),
    }
}

fn try_again(seconds: u64) -> String {
    let unit = if seconds == 1 { "second" } else { "seconds" };
    format!("Try again in {seconds} {unit}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_second_is_singular() {
        let hint = |retry_after| Error::RateLimited { retry_after, login: false }.hint();
        assert_eq!(hint(1).as_deref(), Some("Try again in 1 second."));
        assert_eq!(hint(12).as_deref(), Some("Try again in 12 seconds."));
    }
}
