//! Settings that hold one word of a closed list. Each is an enum, whose words are the names of its variants in lower
//! case, unless an attribute names others, in the order in which messages list them.

use clap::ValueEnum;

/// The kind of place that the service runs in, which decides how strict it is about its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Environment {
    /// On a developer's machine. The defaults are convenient, and password reset tokens are logged.
    Development,
    /// On a public network. The service refuses to start with unsafe settings.
    Production,
}

/// Which HTTP server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HttpServer {
    /// The server of this program, which may face a public network.
    Builtin,
    /// The server of the `rouille` crate, for use behind a proxy.
    Rouille,
}

/// Who may read `/metrics`. For everyone else the path does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricsAccess {
    /// Clients on this host, except for requests with a forwarding header, because those came through a proxy.
    Loopback,
    Off,
    Any,
}

/// Who may make accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Registration {
    /// Anyone.
    Open,
    /// Administrators. The endpoint for registration does not exist.
    Off,
}

/// Who may sign in with a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PasswordLogin {
    On,
    /// Administrators. Others sign in by the OpenID provider.
    Admins,
}

/// Whether the owner of an e-mail address must confirm that it is theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EmailConfirmation {
    Off,
    /// Accounts that register themselves wait for it, and so does another address of one's own account.
    Required,
}

/// Whether administrators need a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AdminSecondFactor {
    Optional,
    /// Without one they can do no more than other users, but set one up.
    Required,
}

/// Whether something is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// Which endpoints require `X-API-Key`, if keys are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApiKeyScope {
    /// The exports.
    Exports,
    /// Every endpoint below `/api/v1`.
    All,
}

/// The status of the response to a sign-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogoutStatus {
    /// Without a body.
    #[value(name = "204")]
    NoContent,
    /// With a message, as some clients expect it.
    #[value(name = "200")]
    Ok,
}

/// The shape of the JSON body of error responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ErrorFormat {
    /// `{"detail": ..., "error_code": ..., "reason": ...}`
    Detail,
    /// `{"error": {"code": ..., "message": ..., ...}}`
    Envelope,
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for log collectors.
    Json,
}

/// The algorithm that signs tokens: HMAC with SHA-256, SHA-384 or SHA-512 (RFC 7518, 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Algorithm {
    Hs256,
    Hs384,
    Hs512,
}

/// The word that users write and see for this value.
pub fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |word| word.get_name().to_owned())
}

impl Algorithm {
    /// The length of the hash in bytes. A key must not be shorter (RFC 7518, 3.2).
    pub fn min_secret_bytes(self) -> usize {
        match self {
            Algorithm::Hs256 => 32,
            Algorithm::Hs384 => 48,
            Algorithm::Hs512 => 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_settings_are_those_of_the_manual() {
        fn words<C: ValueEnum>() -> String {
            C::value_variants().iter().map(word).collect::<Vec<_>>().join(" ")
        }
        assert_eq!(words::<Environment>(), "development production");
        assert_eq!(words::<HttpServer>(), "builtin rouille");
        assert_eq!(words::<MetricsAccess>(), "loopback off any");
        assert_eq!(words::<Registration>(), "open off");
        assert_eq!(words::<Switch>(), "on off");
        assert_eq!(words::<ApiKeyScope>(), "exports all");
        assert_eq!(words::<LogoutStatus>(), "204 200");
        assert_eq!(words::<ErrorFormat>(), "detail envelope");
        assert_eq!(words::<LogFormat>(), "text json");
        assert_eq!(words::<Algorithm>(), "HS256 HS384 HS512");
    }
}
