//! Settings: environment variables, read and validated once, at start (contract, 1). This is the
//! only file that reads the environment.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use reader::Reader;

mod mail;
mod production;
mod reader;
mod values;
pub use mail::Smtp;
pub use values::{
    Algorithm, ApiKeyScope, CorsOrigins, Environment, ErrorFormat, HttpServer, LogFormat,
    MetricsAccess, Scrypt, Secret, UploadTypes,
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
    /// What listens.
    pub http_server: HttpServer,
    /// Threads of the stock server.
    pub workers: usize,
    /// Open client connections.
    pub max_connections: usize,
    /// From a request's first byte to the end of its head.
    pub head_timeout: Duration,
    /// Between requests.
    pub idle_timeout: Duration,
    /// Who may read `/metrics`.
    pub metrics: MetricsAccess,
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
    /// Bytes of one file.
    pub max_upload_size: u64,
    /// Types of files, lower case.
    pub allowed_upload_types: UploadTypes,
    /// Bytes of all files.
    pub storage_quota: u64,
    /// Bytes of one user's files.
    pub user_storage_quota: u64,
    /// False: no rate limits.
    pub rate_limit_enabled: bool,
    /// Requests a minute of the class `auth`.
    pub rate_limit_auth: u32,
    /// Requests a minute of the class `upload`.
    pub rate_limit_upload: u32,
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
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            })
            .collect();
        Config::from_variables(variables)
    }

    fn from_variables(variables: HashMap<String, String>) -> (Config, Vec<String>) {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut r = Reader { variables, shown: Vec::new(), faults: Vec::new() };
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
            http_server: r.choice("CLOAKROOM_HTTP_SERVER", &[("front", HttpServer::Builtin), ("rouille", HttpServer::Rouille)]),
            workers: r.count(&["CLOAKROOM_WORKERS"], (4 * cores).max(16), 10_000) as usize,
            max_connections: r.count(&["CLOAKROOM_MAX_CONNECTIONS"], 1024, 1_000_000) as usize,
            head_timeout: seconds(r.count(&["CLOAKROOM_HEAD_TIMEOUT_SECONDS"], 10, 86_400)),
            idle_timeout: seconds(r.count(&["CLOAKROOM_IDLE_TIMEOUT_SECONDS"], 60, 86_400)),
            metrics: r.choice("CLOAKROOM_METRICS", &[("loopback", MetricsAccess::Loopback), ("off", MetricsAccess::Off), ("any", MetricsAccess::Any)]),
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
            max_upload_size: r.bytes(&["CLOAKROOM_MAX_UPLOAD_SIZE", "MAX_UPLOAD_SIZE"], 10_485_760),
            allowed_upload_types: r.parsed("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "image/jpeg,image/png,application/pdf,text/plain", "comma-separated types without parameters, at most 100 characters each, such as image/png,text/plain"),
            storage_quota: r.bytes(&["CLOAKROOM_STORAGE_QUOTA"], 10_737_418_240),
            user_storage_quota: r.bytes(&["CLOAKROOM_USER_STORAGE_QUOTA"], 1_073_741_824),
            rate_limit_enabled: r.flag("CLOAKROOM_RATE_LIMIT_ENABLED", true),
            rate_limit_auth: r.count(&["CLOAKROOM_RATE_LIMIT_AUTH"], 5, 1_000_000),
            rate_limit_upload: r.count(&["CLOAKROOM_RATE_LIMIT_UPLOAD"], 10, 1_000_000),
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
        (Config { shown, unknown, ..config }, r.faults)
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
