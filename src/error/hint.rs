//! What the sender of a refused request can do about it.

use std::borrow::Cow;

use super::{Error, Forbidden, TokenProblem, Unique};

/// Longest part of a declared media type that a hint repeats, in characters, because clients may declare anything.
const MAX_DECLARED_TYPE: usize = 100;

impl Error {
    /// Whole sentences that stand beside [`Error::message`] in the response. `None` if the message says all there is to
    /// say, or nothing that the sender does would help.
    ///
    /// A hint depends only on the request and on limits that the service tells everybody. So it reveals neither whether
    /// an account exists nor anything internal.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Error::RouteNotFound { has_docs: true } => {
                "The endpoints of the API are below /api/v1; /docs describes them.".to_owned()
            }
            Error::MethodNotAllowed(methods) => format!("This path accepts {methods}."),
            Error::RateLimited { retry_after: 1, .. } => "Try again in 1 second.".to_owned(),
            Error::RateLimited { retry_after, .. } => {
                format!("Try again in {retry_after} seconds.")
            }
            Error::BodyTooLarge(limit) => format!("The body may have at most {limit} bytes."),
            Error::FileTooLarge(limit) => format!("The file may have at most {limit} bytes."),
            Error::ExportTooLarge(limit) => {
                format!("An export has at most {limit} rows. Leave some out with a filter.")
            }
            Error::RangeNotSatisfiable(length) => {
                format!("The file has {length} bytes, of which the first is number 0.")
            }
            Error::TypeNotAllowed { declared, accepted } => {
                let declared: String = declared.chars().take(MAX_DECLARED_TYPE).collect();
                format!("The file was declared as `{declared}`. Accepted are {accepted}.")
            }
            Error::TypeContradicted { declared, recognised } => {
                format!(
                    "The file was declared as `{declared}`, but its first bytes are those of `{recognised}`."
                )
            }
            other => return other.fixed_hint().map(Cow::Borrowed),
        };
        Some(hint.into())
    }

    /// The hints without values.
    fn fixed_hint(&self) -> Option<&'static str> {
        use Error::*;
        Some(match self {
            BadRequest => {
                "Check the request line and the headers. The rules of HTTP/1.1 are in RFC 9112."
            }
            HeadersTooLarge => {
                "The request line and the headers may have at most 16384 bytes, and there may be at most 100 headers."
            }
            HeadTooSlow => "Send the request line and the headers at once.",
            VersionNotSupported => "Use HTTP/1.1 or HTTP/1.0.",
            ExpectationFailed => "The only expectation that is supported is 100-continue.",
            BodyCutShort => {
                "Keep the connection open until the whole body is sent. Content-Length must be its exact size."
            }
            BodyMalformed => {
                "Check the chunks of the body. Their rules are in RFC 9112, section 7.1."
            }
            BodyTooSlow => "Send the body at 4096 bytes a second or faster.",
            Invalid(errors) if errors.iter().any(|error| error.problem.kind == "json_invalid") => {
                r#"Send a JSON object in UTF-8, such as {"name": "value"}."#
            }
            Unavailable => "Try again in a few seconds.",
            OutcomeUnknown => {
                "Find out whether the change was made before you send the request again."
            }
            other => return other.hint_about_access().or_else(|| other.hint_about_records()),
        })
    }

    /// Hints for requests whose sender may not do this, or not like this.
    fn hint_about_access(&self) -> Option<&'static str> {
        use Error::*;
        Some(match self {
            AuthenticationRequired => {
                "Send a token from POST /api/v1/auth/login as `Authorization: Bearer <token>`."
            }
            InvalidScheme | InvalidAuthorization => {
                "Send the token as `Authorization: Bearer <token>`."
            }
            InvalidToken(problem) => problem.hint(),
            UserNotUsable => "Sign in with another account, or ask an administrator.",
            BadCredentials => "Check both. In a password, upper and lower case are different.",
            InactiveAccount => "Ask an administrator to activate the account.",
            WrongCurrentPassword => {
                "Send the password that the account has now as `current_password`."
            }
            InvalidResetToken => {
                "A token works once and expires. POST /api/v1/auth/request-password-reset sends another one."
            }
            ApiKeyMissing { .. } => "Send the key as `X-API-Key: <key>`.",
            ApiKeyInvalid => "Ask the operator of the service for a valid key.",
            AdminRequired => "Sign in with an account whose role is admin.",
            NotPermitted(forbidden) => forbidden.hint(),
            _ => return None,
        })
    }

    /// Hints for requests that do not fit what is stored.
    fn hint_about_records(&self) -> Option<&'static str> {
        use Error::*;
        Some(match self {
            RouteNotFound { .. } => "The endpoints of the API are below /api/v1.",
            UserNotFound => "GET /api/v1/users lists all accounts.",
            SessionNotFound => "GET /api/v1/auth/sessions lists your sessions.",
            TokenNotFound => "GET /api/v1/auth/tokens lists your personal access tokens.",
            FileNotFound => "GET /api/v1/uploads lists your files.",
            TooManyTokens => {
                "End one that is no longer needed with DELETE /api/v1/auth/tokens/{token_id}."
            }
            LastAdmin => "Make another active account an administrator first.",
            Taken(Unique::Username) | TakenAtRegistration(Unique::Username) => {
                "Choose another one. Upper and lower case make no difference."
            }
            Taken(Unique::Email) => "Use another address.",
            TakenAtRegistration(Unique::Email) => {
                "Sign in if the account is yours. Otherwise use another address."
            }
            StorageFull => {
                "Delete files that are no longer needed, or ask the operator of the service for more space."
            }
            _ => return None,
        })
    }
}

impl TokenProblem {
    fn hint(self) -> &'static str {
        match self {
            TokenProblem::NotOurs => {
                "Send the token exactly as the service issued it, or sign in again."
            }
            TokenProblem::NotAccess => {
                "Send an access token. Only POST /api/v1/auth/refresh accepts a refresh token."
            }
            TokenProblem::NotRefresh => "Send the refresh token that came with the access token.",
            TokenProblem::Expired => {
                "Send the refresh token to POST /api/v1/auth/refresh, or sign in again."
            }
            TokenProblem::SessionEnded => "Sign in again.",
            TokenProblem::PersonalTokenEnded => {
                "Sign in and make another personal access token with POST /api/v1/auth/tokens."
            }
        }
    }
}

impl Forbidden {
    fn hint(self) -> &'static str {
        match self {
            Forbidden::PrivateFile => {
                "Only its owner may read this file. The owner can make it public with `is_public`."
            }
            Forbidden::ForeignFile => "Only its owner may change or delete this file.",
            Forbidden::PersonalToken => {
                "A personal access token is not accepted for this. Sign in and send the access token."
            }
            Forbidden::ReadOnlyToken => {
                "The personal access token is read-only. Send another token."
            }
            Forbidden::DevelopmentAdmin => {
                "Authentication is switched off, and the account that all requests have then cannot be changed."
            }
        }
    }
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
