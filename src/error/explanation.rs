//! The HTTP status, the reason, the message and the hint of each error.

use std::borrow::Cow;

use super::{Error, Forbidden, KEY_REUSED, TokenProblem, Unique};

/// What to do after a wrong code.
const WRONG_CODE: &str =
    "Each code works once. Wait for the next one, and check the clock of the device that shows it.";

/// What the client is told about an error.
struct Row {
    status: u16,
    reason: &'static str,
    message: Cow<'static, str>,
    /// Empty if there is none.
    hint: Cow<'static, str>,
}

fn row(
    status: u16,
    reason: &'static str,
    message: impl Into<Cow<'static, str>>,
    hint: impl Into<Cow<'static, str>>,
) -> Row {
    Row { status, reason, message: message.into(), hint: hint.into() }
}

impl Error {
    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        explanation(self).status
    }

    /// The word by which programs recognise the error. It never changes, unlike messages and hints. Errors that a
    /// program handles in the same way share one, such as the two statuses of a taken name.
    pub fn reason(&self) -> &'static str {
        explanation(self).reason
    }

    /// The sentence that clients see.
    pub fn message(&self) -> Cow<'static, str> {
        explanation(self).message
    }

    /// Whole sentences that stand beside the message and tell the sender of the request how to go on. `None` if the
    /// message says enough, or if the sender can do nothing.
    ///
    /// A hint depends only on the request and on limits that the service tells everybody. So it reveals neither whether
    /// an account exists nor anything internal.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        Some(explanation(self).hint).filter(|hint| !hint.is_empty())
    }
}

/// The table of all errors: what the client is told about each.
fn explanation(error: &Error) -> Row {
    use Error::*;
    use Forbidden::*;
    use TokenProblem::*;
    use Unique::*;
    #[rustfmt::skip] // One row an error, as in a table.
    let row = match error {
        BadRequest => row(400, "MALFORMED_REQUEST", "Malformed request",
            "Check the request line and the headers. The rules of HTTP/1.1 are in RFC 9112."),
        SecondAuthorization => row(400, "SECOND_AUTHORIZATION", "Malformed request",
            "There is more than one `Authorization` header. Send one."),
        HeadersTooLarge => row(431, "HEADERS_TOO_LARGE", "Request headers too large",
            "The request line and the headers may have at most 16384 bytes, and there may be at most 100 headers."),
        HeadTooSlow => row(408, "HEADERS_TOO_SLOW", "Request headers came too slowly",
            "Send the request line and the headers at once."),
        VersionNotSupported => row(505, "VERSION_NOT_SUPPORTED", "HTTP version not supported",
            "Use HTTP/1.1 or HTTP/1.0."),
        ExpectationFailed => row(417, "EXPECTATION_FAILED", "Expectation failed",
            "The only expectation that is supported is 100-continue."),
        RouteNotFound { has_docs: true } => row(404, "PATH_NOT_FOUND", "Not Found",
            "The endpoints of the API are below /api/v1; /docs describes them."),
        RouteNotFound { has_docs: false } => row(404, "PATH_NOT_FOUND", "Not Found",
            "The endpoints of the API are below /api/v1."),
        MethodNotAllowed(methods) => row(405, "METHOD_NOT_ALLOWED", "Method Not Allowed",
            format!("This path accepts {methods}.")),
        AuthenticationRequired => row(401, "AUTHENTICATION_REQUIRED", "Authentication required",
            "Send a token from POST /api/v1/auth/login as `Authorization: Bearer <token>`."),
        RefreshTokenRequired => row(401, "REFRESH_TOKEN_REQUIRED", "Authentication required",
            "Send the refresh token as `refresh_token` in the body, or as `Authorization: Bearer <token>`."),
        InvalidScheme => row(401, "INVALID_AUTHENTICATION_SCHEME", "Invalid authentication scheme",
            "Send the token as `Authorization: Bearer <token>`."),
        InvalidAuthorization => row(401, "INVALID_AUTHORIZATION_HEADER", "Invalid authorization header format",
            "Send the token as `Authorization: Bearer <token>`."),
        InvalidToken(NotOurs) => row(401, "INVALID_TOKEN", "Invalid token",
            "Send the token exactly as the service issued it, or sign in again."),
        InvalidToken(NotAccess) => row(401, "NOT_AN_ACCESS_TOKEN", "Invalid token",
            "Send an access token. Only POST /api/v1/auth/refresh accepts a refresh token."),
        InvalidToken(NotRefresh) => row(401, "NOT_A_REFRESH_TOKEN", "Invalid token",
            "Send the refresh token that came with the access token."),
        InvalidToken(Expired) => row(401, "TOKEN_EXPIRED", "Invalid token",
            "Send the refresh token to POST /api/v1/auth/refresh, or sign in again."),
        InvalidToken(SessionEnded) => row(401, "SESSION_ENDED", "Invalid token", "Sign in again."),
        InvalidToken(PersonalTokenEnded) => row(401, "PERSONAL_TOKEN_ENDED", "Invalid token",
            "Sign in and make another personal access token with POST /api/v1/auth/tokens."),
        UserNotUsable => row(401, "ACCOUNT_NOT_USABLE", "User not found or inactive",
            "Sign in with another account, or ask an administrator."),
        ApiKeyMissing { is_export: true } => row(401, "EXPORT_API_KEY_REQUIRED",
            "API key required for export endpoints", "Send the key as `X-API-Key: <key>`."),
        ApiKeyMissing { is_export: false } => row(401, "API_KEY_REQUIRED", "API key is required",
            "Send the key as `X-API-Key: <key>`."),
        ApiKeyInvalid => row(401, "INVALID_API_KEY", "Invalid API key",
            "Ask the operator of the service for a valid key."),
        ApiKeyMisconfigured => row(500, "API_KEY_MISCONFIGURED", "API key validation misconfigured", ""),
        AdminRequired => row(403, "ADMIN_REQUIRED", "Admin privileges required.",
            "Sign in with an account whose role is admin."),
        UserNotFound => row(404, "USER_NOT_FOUND", "User not found", "GET /api/v1/users lists all accounts."),
        SessionNotFound => row(404, "SESSION_NOT_FOUND", "Session not found",
            "GET /api/v1/auth/sessions lists your sessions."),
        TokenNotFound => row(404, "TOKEN_NOT_FOUND", "Token not found",
            "GET /api/v1/auth/tokens lists your personal access tokens."),
        TooManyTokens => row(409, "TOO_MANY_TOKENS", "Too many tokens",
            "End one that is no longer needed with DELETE /api/v1/auth/tokens/{token_id}."),
        LinkNotFound | LinkEnded { .. } => row(404, "LINK_NOT_FOUND", "Link not found",
            "It may have expired or been ended. Its file's owner can make another one."),
        TooManyLinks => row(409, "TOO_MANY_LINKS", "Too many links",
            "End one that is no longer needed with DELETE /api/v1/uploads/{file_id}/links/{link_id}."),
        LastAdmin => row(409, "LAST_ADMIN", "At least one active admin is required",
            "Make another active account an administrator first."),
        FeatureOff => row(404, "FEATURE_OFF", "This feature is not available", ""),
        ExportTooLarge(limit) => row(413, "EXPORT_TOO_LARGE", "Export too large",
            format!("An export has at most {limit} rows. Leave some out with a filter.")),
        OffsetOutOfRange => row(400, "OFFSET_OUT_OF_RANGE", "Offset must be >= 0", ""),
        LimitOutOfRange => row(400, "LIMIT_OUT_OF_RANGE", "Limit must be between 1 and 100", ""),
        BadCredentials { may_wait: false } => row(401, "BAD_CREDENTIALS", "Invalid username or password",
            "Check both. In a password, upper and lower case are different."),
        BadCredentials { may_wait: true } => row(401, "BAD_CREDENTIALS", "Invalid username or password",
            "Check both. If you have just registered, open the link in the mail first."),
        InactiveAccount => row(403, "ACCOUNT_INACTIVE", "Inactive or deleted user.",
            "Ask an administrator to activate the account."),
        SecondFactorRequired { is_password_refused: false } => row(401, "SECOND_FACTOR_REQUIRED",
            "Second factor required",
            "Send the six digits of the authenticator app, or a recovery code, as `code` beside the password."),
        SecondFactorRequired { is_password_refused: true } => row(401, "TOO_MANY_WRONG_CODES",
            "Second factor required",
            "Too many wrong codes were sent with this password. Reset the password, and then send a code."),
        InvalidCode { at_login: true } => row(401, "SECOND_FACTOR_INVALID", "Invalid code", WRONG_CODE),
        InvalidCode { at_login: false } => row(400, "SECOND_FACTOR_INVALID", "Invalid code", WRONG_CODE),
        SecondFactorEnabled => row(409, "SECOND_FACTOR_ENABLED", "Second factor already enabled",
            "DELETE /api/v1/auth/second-factor takes it away."),
        SecondFactorNotFound => row(404, "SECOND_FACTOR_NOT_FOUND", "Second factor not found",
            "POST /api/v1/auth/second-factor begins one, which must be confirmed within 15 minutes."),
        AdminSecondFactorRequired => row(403, "ADMIN_SECOND_FACTOR_REQUIRED", "Second factor required",
            "Administrators need one here. POST /api/v1/auth/second-factor begins one."),
        WrongCurrentPassword => row(400, "WRONG_PASSWORD", "Current password is incorrect",
            "Send the password that the account has now as `current_password`."),
        InvalidResetToken => row(400, "INVALID_RESET_TOKEN", "Invalid or expired token",
            "A token works once and expires. POST /api/v1/auth/request-password-reset sends another one."),
        InvalidConfirmationToken => row(400, "INVALID_CONFIRMATION_TOKEN", "Invalid or expired token",
            "Check the password. A token works once and expires after two days. If several mails came, a later one may \
             be the right one; if none does, register or ask for the address again."),
        TakenAtRegistration(Username) => row(400, "USERNAME_TAKEN", "Username already exists",
            "Choose another one. Upper and lower case make no difference."),
        TakenAtRegistration(Email) => row(400, "EMAIL_TAKEN", "Email already exists",
            "Sign in if the account is yours. Otherwise use another address."),
        Taken(Username) => row(409, "USERNAME_TAKEN", "Username already exists",
            "Choose another one. Upper and lower case make no difference."),
        Taken(Email) => row(409, "EMAIL_TAKEN", "Email already exists", "Use another address."),
        Invalid(errors) if errors.iter().any(|error| error.problem.kind == "json_invalid") => row(422, "INVALID_JSON",
            "Validation failed", r#"Send a JSON object in UTF-8, such as {"name": "value"}."#),
        Invalid(errors) if errors.iter().any(|error| error.problem.message == KEY_REUSED) => row(422, "KEY_REUSED",
            "Validation failed", "Send another key with another request. A key belongs to one upload for a day."),
        Invalid(_) => row(422, "VALIDATION_FAILED", "Validation failed", ""),
        BodyTooLarge(limit) => row(413, "BODY_TOO_LARGE", "Request body too large",
            format!("The body may have at most {limit} bytes.")),
        FormTooLarge { file, rest } => row(413, "FORM_TOO_LARGE", "Request body too large",
            format!("The form may have at most {} bytes: {file} for the file, and {rest} for all else.",
                file.saturating_add(*rest))),
        FileTooLarge(limit) => row(413, "FILE_TOO_LARGE", file_too_large(*limit),
            format!("The file may have at most {limit} bytes.")),
        TypeNotAllowed { found: Some(name), accepted } => row(415, "TYPE_NOT_ALLOWED", "File type not allowed",
            format!("The file is of the type `{name}`. Accepted are {accepted}.")),
        TypeNotAllowed { found: None, accepted } => row(415, "TYPE_NOT_ALLOWED", "File type not allowed",
            format!("The file declares no type, and its content shows none. Accepted are {accepted}.")),
        TypeContradicted { declared, recognised } => row(415, "TYPE_CONTRADICTED", "File type not allowed",
            format!("The file was declared as `{declared}`, but its first bytes are those of `{recognised}`.")),
        EncodingNotSupported => row(415, "CONTENT_ENCODING", "Content encoding is not supported",
            "Send the body as it is, without Content-Encoding."),
        StorageFull => row(507, "STORAGE_FULL", "Storage quota exceeded",
            "Delete files that are no longer needed, or ask the operator of the service for more space."),
        FileNotFound => row(404, "FILE_NOT_FOUND", "File not found", "GET /api/v1/uploads lists your files."),
        NotPermitted(PrivateFile) => row(403, "PRIVATE_FILE", "Not enough permissions",
            "Only its owner may read this file. The owner can make it public with `is_public`."),
        NotPermitted(ForeignFile) => row(403, "NOT_FILE_OWNER", "Not enough permissions",
            "Only its owner may change, share or delete this file."),
        NotPermitted(PersonalToken) => row(403, "PERSONAL_TOKEN_REFUSED", "Not enough permissions",
            "A personal access token is not accepted for this. Sign in and send the access token."),
        NotPermitted(AdminByPersonalToken) => row(403, "PERSONAL_TOKEN_CANNOT_CHANGE_ADMIN", "Not enough permissions",
            "A personal access token cannot make, change or delete an administrator. Send the access token."),
        NotPermitted(ReadOnlyToken) => row(403, "READ_ONLY_TOKEN", "Not enough permissions",
            "The personal access token is read-only. Send another token."),
        NotPermitted(UploadToken) => row(403, "UPLOAD_TOKEN", "Not enough permissions",
            "The personal access token is accepted for POST /api/v1/uploads only. Send another token."),
        NotPermitted(OwnSecondFactor) => row(403, "OWN_SECOND_FACTOR", "Not enough permissions",
            "DELETE /api/v1/auth/second-factor takes your own away, with the password and a code."),
        NotPermitted(DevelopmentAdmin) => row(403, "DEVELOPMENT_ADMIN", "Not enough permissions",
            "Authentication is switched off, and the account that all requests have then cannot be changed."),
        NotPermitted(ForeignPage) => row(403, "FOREIGN_PAGE", "Not enough permissions",
            "Authentication is switched off, so only this host's own pages are answered. \
             CLOAKROOM_CORS_ORIGINS can list more."),
        PreconditionFailed => row(412, "PRECONDITION_FAILED", "Precondition failed",
            "The file is not in the state that the request names. Read it again, then repeat the change."),
        ChangesForgotten => row(410, "GONE", "Changes are no longer known",
            "Begin anew without `after`: that lists all files that are there."),
        RangeNotSatisfiable(length) => row(416, "RANGE_NOT_SATISFIABLE", "Range not satisfiable",
            format!("The file has {length} bytes, of which the first is number 0.")),
        BodyCutShort => row(400, "BODY_CUT_SHORT", "Request body ended early",
            "Keep the connection open until the whole body is sent. Content-Length must be its exact size."),
        BodyMalformed => row(400, "MALFORMED_BODY", "Malformed request body",
            "Check the chunks of the body. Their rules are in RFC 9112, section 7.1."),
        BodyTooSlow => row(408, "BODY_TOO_SLOW", "Request body came too slowly",
            "Send the body at 4096 bytes a second or faster."),
        RateLimited { retry_after, login: true } => row(429, "LOGIN_RATE_LIMITED",
            "Too many login attempts. Please try again later.", try_again(*retry_after)),
        RateLimited { retry_after, login: false } => row(429, "RATE_LIMITED", "Rate limit exceeded",
            try_again(*retry_after)),
        Unavailable | StoreUnavailable => row(503, "UNAVAILABLE", "Service temporarily unavailable",
            "Try again in a few seconds."),
        OutcomeUnknown => row(503, "OUTCOME_UNKNOWN", "Service temporarily unavailable",
            "Find out whether the change was made before you send the request again."),
        TimedOut => row(504, "TIMED_OUT", "Request timed out", ""),
        Internal(_) => row(500, "INTERNAL_ERROR", "Internal server error", ""),
    };
    row
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
