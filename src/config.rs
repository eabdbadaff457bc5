//! Settings: environment variables, read and validated once, at start (contract, 1). This is the
//! only file that reads the environment.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

mod mail;
mod production;
mod values;
pub use mail::Smtp;
pub use values::{
    Algorithm, ApiKeyScope, CorsOrigins, Environment, ErrorFormat, LogFormat, Scrypt, Secret,
};

/// Everything that can be set. Times are whole seconds or larger, sizes are bytes.
pub struct Config {
    /// Development or production.
    pub environment: Environment,
    /// Address and port to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// libpq URL or key/value form.
    pub database_url: Secret,
    /// PEM file with the authority of the database's certificate; when set, TLS is required.
    pub database_ca: Option<PathBuf>,
    /// Connections in the pool.
    pub database_pool_size: u32,
    /// Longest wait for a pooled connection, and the statement timeout.
    pub database_timeout: Duration,
    /// Threads that answer requests.
    pub workers: usize,
    /// Directory of everything kept outside the database.
    pub data_dir: PathBuf,
    /// Signing secret; `None` means the one kept in `data_dir` (development only).
    pub jwt_secret: Option<Secret>,
    /// Signing algorithm.
    pub jwt_algorithm: Algorithm,
    /// Lifetime of access tokens.
    pub access_token_lifetime: Duration,
    /// Lifetime of refresh tokens.
    pub refresh_token_lifetime: Duration,
    /// How long a rotated refresh token still works.
    pub refresh_reuse: Duration,
    /// Lifetime of password reset tokens.
    pub password_reset_lifetime: Duration,
    /// Cost of a password hash.
    pub scrypt: Scrypt,
    /// False: every request acts as the development admin.
    pub auth_enabled: bool,
    /// Whether `X-API-Key` is asked for.
    pub api_key_enabled: bool,
    /// The keys that are good; none: every request that needs one is answered 500.
    pub api_keys: Vec<Secret>,
    /// Where the key is asked for.
    pub api_key_scope: ApiKeyScope,
    /// Exports need the token of an admin.
    pub export_require_admin: bool,
    /// Anyone may export without a token.
    pub allow_anonymous_export: bool,
    /// Most rows of an export.
    pub export_max_rows: u32,
    /// Longest wait before an export's first byte.
    pub export_timeout: Duration,
    /// Bytes of all files.
    pub storage_quota: u64,
    /// False: no rate limits.
    pub rate_limit_enabled: bool,
    /// Requests a minute of the class `auth`.
    pub rate_limit_auth: u32,
    /// Requests a minute of the class `general`.
    pub rate_limit_general: u32,
    /// Requests a minute of the class `admin`.
    pub rate_limit_admin: u32,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins that browsers may call from.
    pub cors_origins: CorsOrigins,
    /// Whether the endpoints for tests of clients exist.
    pub test_endpoints_enabled: bool,
    /// Shape of error bodies.
    pub error_format: ErrorFormat,
    /// The mail server.
    pub smtp: Smtp,
    /// Sender of mails.
    pub mail_from: Option<String>,
    /// Link in the mail about a password reset, with `{token}` in it.
    pub password_reset_url: Option<String>,
    /// Level of this program's own log records.
    pub log_level: log::LevelFilter,
    /// Shape of log lines.
    pub log_format: LogFormat,
    /// Password for `create-admin`; not a setting, so not shown.
    pub admin_password: Option<Secret>,
    /// Each setting's name and effective value as `cloakroom config` shows it.
    pub shown: Vec<(&'static str, String)>,
    /// Variables that look like settings but are none, each with the nearest known name.
    pub unknown: Vec<(String, &'static str)>,
}

impl Config {
    /// Reads the process environment. With it come the faults, one line each; where there are any
    /// the settings are not to be used.
    pub fn from_environment() -> (Config, Vec<String>) {
        let variables = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect();
        Config::from_variables(variables)
    }

    fn from_variables(variables: HashMap<String, String>) -> (Config, Vec<String>) {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut r = Reader {
            variables,
            shown: Vec::new(),
            faults: Vec::new(),
        };
        let minutes = |n: u32| Duration::from_secs(u64::from(n) * 60);
        let seconds = |n: u32| Duration::from_secs(u64::from(n));
        let config = Config {
            environment: r.choice("CLOAKROOM_ENV", &[("development", Environment::Development), ("production", Environment::Production)]),
            listen: r.listen(),
            database_url: r.secret(
                &["CLOAKROOM_DATABASE_URL", "DATABASE_URL"],
                "a PostgreSQL URL, such as postgres://user:password@host/database",
            ),
            database_ca: r.text("CLOAKROOM_DATABASE_CA").map(PathBuf::from),
            database_pool_size: r.count(&["CLOAKROOM_DATABASE_POOL_SIZE"], (2 * cores).max(8), 10_000),
            database_timeout: seconds(r.count(&["CLOAKROOM_DATABASE_TIMEOUT_SECONDS"], 5, 86_400)),
            workers: r.count(&["CLOAKROOM_WORKERS"], (4 * cores).max(16), 10_000) as usize,
            data_dir: PathBuf::from(r.or_default("CLOAKROOM_DATA_DIR", "./data")),
            jwt_secret: r.optional_secret("CLOAKROOM_JWT_SECRET", "made at first start, kept in DATA_DIR/jwt-secret"),
            jwt_algorithm: r.choice("CLOAKROOM_JWT_ALGORITHM", &[("HS256", Algorithm::Hs256), ("HS384", Algorithm::Hs384), ("HS512", Algorithm::Hs512)]),
            access_token_lifetime: minutes(r.count(
                &["CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "ACCESS_TOKEN_EXPIRE_MINUTES"],
                60,
                5_256_000,
            )),
            refresh_token_lifetime: Duration::from_secs(
                u64::from(r.count(&["CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS"], 7, 3650)) * 86_400,
            ),
            refresh_reuse: seconds(r.count(&["CLOAKROOM_REFRESH_REUSE_SECONDS"], 10, 86_400)),
            password_reset_lifetime: minutes(r.count(&["CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES"], 30, 525_600)),
            scrypt: r.parsed("CLOAKROOM_SCRYPT", "14,8,5", "log2 N (1 to 24), r (1 to 32) and p (1 to 64), at most 1 GiB a hash, such as 14,8,5"),
            auth_enabled: r.flag("CLOAKROOM_AUTH_ENABLED", true),
            api_key_enabled: r.flag("CLOAKROOM_API_KEY_ENABLED", false),
            api_keys: r.secrets("CLOAKROOM_API_KEY"),
            api_key_scope: r.choice("CLOAKROOM_API_KEY_SCOPE", &[("exports", ApiKeyScope::Exports), ("all", ApiKeyScope::All)]),
            export_require_admin: r.flag("CLOAKROOM_EXPORT_REQUIRE_ADMIN", false),
            allow_anonymous_export: r.flag("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", false),
            export_max_rows: r.count(&["CLOAKROOM_EXPORT_MAX_ROWS"], 1_000_000, 1_000_000_000),
            export_timeout: seconds(r.count(&["CLOAKROOM_EXPORT_TIMEOUT_SECONDS"], 60, 86_400)),
            storage_quota: r.bytes(&["CLOAKROOM_STORAGE_QUOTA"], 10_737_418_240),
            rate_limit_enabled: r.flag("CLOAKROOM_RATE_LIMIT_ENABLED", true),
            rate_limit_auth: r.count(&["CLOAKROOM_RATE_LIMIT_AUTH"], 5, 1_000_000),
            rate_limit_general: r.count(&["CLOAKROOM_RATE_LIMIT_GENERAL"], 100, 1_000_000),
            rate_limit_admin: r.count(&["CLOAKROOM_RATE_LIMIT_ADMIN"], 200, 1_000_000),
            trusted_proxies: r.networks("CLOAKROOM_TRUSTED_PROXIES"),
            cors_origins: r.parsed("CLOAKROOM_CORS_ORIGINS", "", "comma-separated origins, such as https://app.example.com, or *"),
            test_endpoints_enabled: r.flag("CLOAKROOM_TEST_ENDPOINTS_ENABLED", false),
            error_format: r.choice("CLOAKROOM_ERROR_FORMAT", &[("detail", ErrorFormat::Detail), ("envelope", ErrorFormat::Envelope)]),
            smtp: r.smtp("CLOAKROOM_SMTP_URL"),
            mail_from: r.checked("CLOAKROOM_MAIL_FROM", "an e-mail address, such as Cloakroom <noreply@example.com>", mail::is_mailbox),
            password_reset_url: r.checked("CLOAKROOM_PASSWORD_RESET_URL", "an http or https URL with {token} in it", mail::is_reset_url),
            log_level: r.log_level(),
            log_format: r.choice("CLOAKROOM_LOG_FORMAT", &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            // Passwords are never trimmed.
            admin_password: r.variables.get("CLOAKROOM_ADMIN_PASSWORD").filter(|p| !p.is_empty()).cloned().map(Secret::new),
            shown: Vec::new(),
            unknown: Vec::new(),
        };
        config.check_secret(&mut r.faults);
        production::guard(&config, &mut r.faults);
        let known: Vec<_> = r.shown.iter().map(|(name, _)| *name).collect();
        let unknown = values::unknown_names(r.variables.keys(), &known);
        let shown = r.shown;
        (
            Config {
                shown,
                unknown,
                ..config
            },
            r.faults,
        )
    }

    fn check_secret(&self, faults: &mut Vec<String>) {
        let least = self.jwt_algorithm.least_secret_bytes();
        if let Some(secret) = &self.jwt_secret
            && secret.expose().len() < least
        {
            faults.push(format!(
                "CLOAKROOM_JWT_SECRET holds {} bytes; allowed: at least {least} for {}",
                secret.expose().len(),
                format!("{:?}", self.jwt_algorithm).to_uppercase(),
            ));
        }
    }
}

/// Looks settings up, notes what was found and what is wrong with it.
struct Reader {
    variables: HashMap<String, String>,
    shown: Vec<(&'static str, String)>,
    faults: Vec<String>,
}

impl Reader {
    /// The first of `names` that is set and not empty, with the name it was found under.
    fn look_up(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|&name| {
            let value = self.variables.get(name)?.trim();
            (!value.is_empty()).then(|| (name, value.to_owned()))
        })
    }

    fn or_default(&mut self, name: &'static str, default: &str) -> String {
        let value = self
            .look_up(&[name])
            .map_or_else(|| default.to_owned(), |(_, value)| value);
        self.shown.push((name, value.clone()));
        value
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.or_default(name, "");
        (!value.is_empty()).then_some(value)
    }

    /// A value of a type with its own text form; `default` must parse.
    fn parsed<T: FromStr + Default>(
        &mut self,
        name: &'static str,
        default: &str,
        allowed: &str,
    ) -> T {
        let value = self.or_default(name, default);
        self.or_fault(name, &value, allowed, value.parse().ok())
    }

    fn or_fault<T: Default>(
        &mut self,
        name: &str,
        held: impl Display,
        allowed: &str,
        parsed: Option<T>,
    ) -> T {
        parsed.unwrap_or_else(|| {
            self.faults
                .push(format!("{name} holds \"{held}\"; allowed: {allowed}"));
            T::default()
        })
    }

    /// One word of a closed list; the first is the default.
    fn choice<T: Copy + Default>(&mut self, name: &'static str, words: &[(&str, T)]) -> T {
        let value = self.or_default(name, words[0].0);
        let parsed = words
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, choice)| *choice);
        let allowed: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.or_fault(name, value, &allowed.join(", "), parsed)
    }

    fn listen(&mut self) -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], 8000));
        let value = self.or_default("CLOAKROOM_LISTEN", &default.to_string());
        value.parse().unwrap_or_else(|_| {
            let allowed = "an address and port, such as 127.0.0.1:8000 or [::]:8000";
            self.faults.push(format!(
                "CLOAKROOM_LISTEN holds \"{value}\"; allowed: {allowed}"
            ));
            default
        })
    }

    fn count(&mut self, names: &[&'static str], default: usize, most: u32) -> u32 {
        let (name, value) = self
            .look_up(names)
            .unwrap_or_else(|| (names[0], default.to_string()));
        self.shown.push((names[0], value.clone()));
        let parsed = value.parse().ok().filter(|n| (1..=most).contains(n));
        self.or_fault(
            name,
            value,
            &format!("a whole number from 1 to {most}"),
            parsed,
        )
    }

    fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.or_default(name, if default { "true" } else { "false" });
        let parsed = match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        };
        self.or_fault(name, value, "true or false", parsed)
    }

    fn secret(&mut self, names: &[&'static str], allowed: &str) -> Secret {
        let found = self.look_up(names);
        self.shown.push((
            names[0],
            if found.is_some() {
                "(set, not shown)"
            } else {
                ""
            }
            .to_owned(),
        ));
        found
            .map(|(_, value)| Secret::new(value))
            .unwrap_or_else(|| {
                self.faults
                    .push(format!("{} is not set; allowed: {allowed}", names[0]));
                Secret::default()
            })
    }

    fn optional_secret(&mut self, name: &'static str, without: &str) -> Option<Secret> {
        let found = self.look_up(&[name]);
        self.shown.push((
            name,
            if found.is_some() {
                "(set, not shown)".into()
            } else {
                format!("({without})")
            },
        ));
        found.map(|(_, value)| Secret::new(value))
    }

    fn bytes(&mut self, names: &[&'static str], default: u64) -> u64 {
        let (name, value) = self
            .look_up(names)
            .unwrap_or_else(|| (names[0], default.to_string()));
        self.shown.push((names[0], value.clone()));
        let parsed = value.parse().ok().filter(|n| (1..=1 << 60).contains(n));
        self.or_fault(name, value, "a number of bytes from 1 to 2^60", parsed)
    }

    fn networks(&mut self, name: &'static str) -> Vec<IpNet> {
        let value = self.or_default(name, "");
        let parsed = value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                part.parse().ok().or_else(|| {
                    part.parse()
                        .ok()
                        .map(|address: std::net::IpAddr| IpNet::from(address))
                })
            })
            .collect();
        self.or_fault(
            name,
            value,
            "comma-separated addresses or CIDR blocks, such as 10.0.0.0/8",
            parsed,
        )
    }

    /// A level, or `env_logger` directives of which the ones for this program count.
    fn log_level(&mut self) -> log::LevelFilter {
        let (name, value) = self
            .look_up(&["CLOAKROOM_LOG", "RUST_LOG"])
            .unwrap_or(("CLOAKROOM_LOG", "info".into()));
        let mut level = Some(log::LevelFilter::Info);
        for directive in value.split(',').map(str::trim) {
            let (target, word) = directive
                .split_once('=')
                .unwrap_or(("cloakroom", directive));
            match word.parse() {
                Ok(parsed) if target == "cloakroom" => level = level.and(Some(parsed)),
                Ok(_) => {}
                Err(_) => level = None,
            }
        }
        self.shown.push(("CLOAKROOM_LOG", value.clone()));
        self.or_fault(
            name,
            value,
            "off, error, warn, info, debug or trace",
            level.map(Level),
        )
        .0
    }
}

/// `LevelFilter` with a default for a value that was refused anyway.
struct Level(log::LevelFilter);

impl Default for Level {
    fn default() -> Self {
        Level(log::LevelFilter::Info)
    }
}
