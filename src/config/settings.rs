//! Every setting: its type, the variable it comes from, its default and its limits.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use lettre::message::Mailbox;

use super::mail::{Smtp, is_reset_url, mailbox, public_url};
use super::reader::{SettingsReader, ShownSetting, UnknownVariable};
use super::store::{self, StoreSettings};
use super::values::{CorsOrigins, ScryptCost, Secret, UploadTypes, networks, own_log_level};
use super::words::{
    AdminSecondFactor, Algorithm, ApiKeyScope, Environment, ErrorFormat, HttpServer, LogFormat,
    MetricsAccess, Registration, Switch,
};

/// The settings of this process. Sizes are bytes.
pub struct Config {
    pub environment: Environment,
    /// Address and port to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// A PostgreSQL connection string: a URL or `key=value` pairs.
    pub database_url: Secret,
    /// PEM file with the certificate authority of the database server. If set, TLS is required.
    pub database_ca: Option<PathBuf>,
    /// Most connections in the pool.
    pub database_pool_size: u32,
    /// The longest wait for a pooled connection, and the statement timeout of ordinary queries.
    pub database_timeout: Duration,
    pub http_server: HttpServer,
    /// Threads of the `rouille` server. The builtin server starts a thread for each connection instead.
    pub workers: usize,
    /// Most client connections that are open at the same time.
    pub max_connections: usize,
    /// Most open connections from one client network; loopback addresses and trusted proxies are exempt.
    pub max_connections_per_address: usize,
    /// The longest time from the first byte of a request to the end of its head.
    pub head_timeout: Duration,
    /// The longest time a connection may be idle between two requests.
    pub idle_timeout: Duration,
    /// Who may read `/metrics`.
    pub metrics: MetricsAccess,
    /// Whether the OpenAPI document and the pages that show it are served.
    pub docs: bool,
    /// Whether the console, the pages for people, is served.
    pub console: bool,
    /// The URL under which people reach the service, without a slash at its end.
    pub public_url: Option<String>,
    /// The directory of everything that is kept outside the database.
    pub data_dir: PathBuf,
    /// The store that keeps contents; `None` if `data_dir` does.
    pub store: Option<StoreSettings>,
    /// The secret that signs tokens. If `None`, which only development allows, the one kept in `data_dir` is used.
    pub jwt_secret: Option<Secret>,
    /// Secrets that signed tokens before, or will from the next restart on. Their tokens are valid too.
    pub jwt_old_secrets: Vec<Secret>,
    /// Names this service in its tokens, as the claim `iss`. If set, tokens of other issuers are not accepted.
    pub jwt_issuer: Option<String>,
    pub jwt_algorithm: Algorithm,
    /// The first one seals the secrets of second factors, and all of them open such secrets. If there is none, the
    /// secret that signs tokens does.
    pub seal_keys: Vec<Secret>,
    pub admin_second_factor: AdminSecondFactor,
    pub access_token_lifetime: Duration,
    pub refresh_token_lifetime: Duration,
    /// How long a refresh token still works after its first use. A client whose response was lost can then
    /// repeat the request and stays signed in.
    pub refresh_reuse: Duration,
    /// How long after its sign-in a session ends, however often it is refreshed.
    pub session_max_age: Duration,
    pub password_reset_lifetime: Duration,
    /// Whether users must give their password to change their e-mail address.
    pub email_change_requires_password: bool,
    /// The cost of a password hash.
    pub scrypt: ScryptCost,
    /// Who may make accounts.
    pub registration: Registration,
    /// Accounts that may be registered in a day from one client address; 0 is no limit.
    pub registrations_per_day: u32,
    /// If false, every request acts as the development admin.
    pub auth_enabled: bool,
    /// Whether the endpoints of `api_key_scope` require `X-API-Key`.
    pub api_key_enabled: bool,
    /// The accepted keys. If there are none, every request that needs one is answered 500.
    pub api_keys: Vec<Secret>,
    pub api_key_scope: ApiKeyScope,
    /// Whether exports need the token of an admin.
    pub export_require_admin: bool,
    /// Whether anyone may export without a token.
    pub allow_anonymous_export: bool,
    /// Whether one of the last two settings was set, to whatever value.
    pub export_access_is_set: bool,
    /// Most rows of one export.
    pub export_max_rows: u32,
    /// The longest time until the first rows of an export are read, and then until each further batch is.
    pub export_timeout: Duration,
    /// Largest size of one file.
    pub max_upload_size: u64,
    pub allowed_upload_types: UploadTypes,
    /// Most bytes of all files together.
    pub storage_quota: u64,
    /// Most bytes of one user's files.
    pub user_storage_quota: u64,
    /// Most files of one user.
    pub user_file_quota: u32,
    /// How many days contents without a record stay in the trash.
    pub trash_days: u32,
    /// How many days audit events are kept; failures 30 at most.
    pub audit_days: u32,
    pub rate_limit_enabled: bool,
    /// Requests a minute for sign-in and the like, per client address and endpoint.
    pub rate_limit_auth: u32,
    /// Uploads a minute, per user.
    pub rate_limit_upload: u32,
    /// Requests a minute for everything else, per user.
    pub rate_limit_general: u32,
    /// Requests a minute for administration, per admin.
    pub rate_limit_admin: u32,
    /// Requests a minute from one client address, by anonymous callers and young accounts together; 0 is no limit.
    pub rate_limit_address: u32,
    /// The peers whose `X-Forwarded-For` header is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The origins whose web pages may use the API from a browser.
    pub cors_origins: CorsOrigins,
    /// Whether the endpoints that help to test clients exist. One of them deletes all users.
    pub test_endpoints_enabled: bool,
    pub error_format: ErrorFormat,
    pub smtp: Smtp,
    /// The sender of outgoing mail.
    pub mail_from: Option<Mailbox>,
    /// The link in the mail about a password reset; `{token}` in it is replaced by the token.
    pub password_reset_url: Option<String>,
    /// The level of this program's own log records.
    pub log_level: log::LevelFilter,
    pub log_format: LogFormat,
    /// Each setting that was not refused, as `cloakroom config` prints them.
    pub shown: Vec<ShownSetting>,
    /// Variables that are named like settings but are none, without those that a fault names.
    pub unknown: Vec<UnknownVariable>,
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const MINUTES_PER_YEAR: u32 = 365 * 24 * 60;
/// The largest size: an exbibyte, so that the sum of two fits the signed 64 bits of the database.
const MAX_BYTES: u64 = 1 << 60;
/// Longest issuer, in bytes. Every token contains it, so it must be short.
const MAX_ISSUER: usize = 255;
const LOG_LEVELS: &str = "off, error, warn, info, debug or trace";
/// The largest rate limit, in requests a minute, or registrations a day.
const MAX_RATE: u32 = 1_000_000;

impl Config {
    /// Reads every setting, in the order in which `cloakroom config` shows them. Each call names the variable, its
    /// default and, for numbers, its range. If `r` notes a fault, the result has the default.
    pub fn read(r: &mut SettingsReader) -> Config {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let connections = (2 * cores).max(8) as u32;
        let environment = r.choice("CLOAKROOM_ENV", Environment::Development);
        let (registrations_per_day, console) = match environment {
            Environment::Production => (50, Switch::Off),
            Environment::Development => (0, Switch::On),
        };
        Config {
            environment,
            listen: r.parsed(
                "CLOAKROOM_LISTEN",
                SocketAddr::from(([127, 0, 0, 1], 8000)),
                "an address and port, such as 127.0.0.1:8000 or [::]:8000",
            ),
            database_url: r.database_url(),
            database_ca: r
                .optional("CLOAKROOM_DATABASE_CA", "a path", |text| Some(PathBuf::from(text))),
            database_pool_size: r.number("CLOAKROOM_DATABASE_POOL_SIZE", connections, 1..=10_000),
            database_timeout: r.seconds("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", 5),
            http_server: r.choice("CLOAKROOM_HTTP_SERVER", HttpServer::Builtin),
            workers: r.number("CLOAKROOM_WORKERS", (4 * cores).max(16), 1..=10_000),
            max_connections: r.number("CLOAKROOM_MAX_CONNECTIONS", 1024, 1..=1_000_000),
            max_connections_per_address: r.number(
                "CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS",
                256,
                1..=1_000_000,
            ),
            head_timeout: r.seconds("CLOAKROOM_HEAD_TIMEOUT_SECONDS", 10),
            idle_timeout: r.seconds("CLOAKROOM_IDLE_TIMEOUT_SECONDS", 60),
            metrics: r.choice("CLOAKROOM_METRICS", MetricsAccess::Loopback),
            docs: r.choice("CLOAKROOM_DOCS", Switch::On) == Switch::On,
            console: r.choice("CLOAKROOM_CONSOLE", console) == Switch::On,
            public_url: r.optional(
                "CLOAKROOM_PUBLIC_URL",
                "an http or https URL without user, path, query and fragment, such as https://files.example.com",
                public_url,
            ),
            data_dir: r.parsed("CLOAKROOM_DATA_DIR", "./data".to_owned(), "").into(),
            store: store::read(r, environment),
            jwt_secret: r.secret(
                "CLOAKROOM_JWT_SECRET",
                "(made at first start, kept in DATA_DIR/jwt-secret)",
            ),
            jwt_old_secrets: r.secrets("CLOAKROOM_JWT_OLD_SECRETS"),
            jwt_issuer: r.optional("CLOAKROOM_JWT_ISSUER", "at most 255 bytes", |text| {
                (text.len() <= MAX_ISSUER).then(|| text.to_owned())
            }),
            jwt_algorithm: r.choice("CLOAKROOM_JWT_ALGORITHM", Algorithm::Hs256),
            seal_keys: r.secrets("CLOAKROOM_SEAL_KEYS"),
            admin_second_factor: r
                .choice("CLOAKROOM_ADMIN_SECOND_FACTOR", AdminSecondFactor::Optional),
            access_token_lifetime: MINUTE
                * r.number("CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", 60, 1..=10 * MINUTES_PER_YEAR),
            refresh_token_lifetime: DAY
                * r.number("CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS", 7, 1..=3650),
            refresh_reuse: r.seconds("CLOAKROOM_REFRESH_REUSE_SECONDS", 10),
            session_max_age: DAY * r.number("CLOAKROOM_SESSION_MAX_DAYS", 90, 1..=3650),
            password_reset_lifetime: MINUTE
                * r.number("CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES", 30, 1..=MINUTES_PER_YEAR),
            email_change_requires_password: r
                .flag("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", false),
            scrypt: r.parsed(
                "CLOAKROOM_SCRYPT",
                ScryptCost { log_n: 14, r: 8, p: 5 },
                "log2 N (1 to 24), r (1 to 32) and p (1 to 64), at most 1 GiB a hash, \
                 such as 14,8,5",
            ),
            registration: r.choice("CLOAKROOM_REGISTRATION", Registration::Open),
            registrations_per_day: r.number(
                "CLOAKROOM_REGISTRATIONS_PER_DAY",
                registrations_per_day,
                0..=MAX_RATE,
            ),
            auth_enabled: r.flag("CLOAKROOM_AUTH_ENABLED", true),
            api_key_enabled: r.flag("CLOAKROOM_API_KEY_ENABLED", false),
            api_keys: r.secrets("CLOAKROOM_API_KEY"),
            api_key_scope: r.choice("CLOAKROOM_API_KEY_SCOPE", ApiKeyScope::Exports),
            export_require_admin: r.flag("CLOAKROOM_EXPORT_REQUIRE_ADMIN", false),
            allow_anonymous_export: r.flag("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", false),
            export_access_is_set: r.is_set("CLOAKROOM_EXPORT_REQUIRE_ADMIN")
                || r.is_set("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT"),
            export_max_rows: r.number("CLOAKROOM_EXPORT_MAX_ROWS", 1_000_000, 1..=1_000_000_000),
            export_timeout: r.seconds("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", 60),
            max_upload_size: r.size("CLOAKROOM_MAX_UPLOAD_SIZE", 10 << 20, MAX_BYTES),
            allowed_upload_types: r.parsed(
                "CLOAKROOM_ALLOWED_UPLOAD_TYPES",
                UploadTypes::new(&["image/jpeg", "image/png", "application/pdf", "text/plain"]),
                "comma-separated types without parameters, at most 100 characters each, \
                 such as image/png,text/plain",
            ),
            storage_quota: r.size("CLOAKROOM_STORAGE_QUOTA", 10 << 30, MAX_BYTES),
            user_storage_quota: r.size("CLOAKROOM_USER_STORAGE_QUOTA", 1 << 30, MAX_BYTES),
            user_file_quota: r.number("CLOAKROOM_USER_FILE_QUOTA", 100_000, 1..=1_000_000_000),
            trash_days: r.number("CLOAKROOM_TRASH_DAYS", 7, 1..=3650),
            audit_days: r.number("CLOAKROOM_AUDIT_DAYS", 365, 1..=36_500),
            rate_limit_enabled: r.flag("CLOAKROOM_RATE_LIMIT_ENABLED", true),
            rate_limit_auth: r.number("CLOAKROOM_RATE_LIMIT_AUTH", 5, 1..=MAX_RATE),
            rate_limit_upload: r.number("CLOAKROOM_RATE_LIMIT_UPLOAD", 10, 1..=MAX_RATE),
            rate_limit_general: r.number("CLOAKROOM_RATE_LIMIT_GENERAL", 100, 1..=MAX_RATE),
            rate_limit_admin: r.number("CLOAKROOM_RATE_LIMIT_ADMIN", 200, 1..=MAX_RATE),
            rate_limit_address: r.number("CLOAKROOM_RATE_LIMIT_ADDRESS", 3000, 0..=MAX_RATE),
            trusted_proxies: r
                .optional(
                    "CLOAKROOM_TRUSTED_PROXIES",
                    "comma-separated addresses or CIDR blocks, such as 10.0.0.0/8",
                    networks,
                )
                .unwrap_or_default(),
            cors_origins: r
                .optional(
                    "CLOAKROOM_CORS_ORIGINS",
                    "comma-separated origins, such as https://app.example.com, or *",
                    |text| text.parse().ok(),
                )
                .unwrap_or(CorsOrigins::Off),
            test_endpoints_enabled: r.flag("CLOAKROOM_TEST_ENDPOINTS_ENABLED", false),
            error_format: r.choice("CLOAKROOM_ERROR_FORMAT", ErrorFormat::Detail),
            smtp: r.smtp("CLOAKROOM_SMTP_URL"),
            mail_from: r.optional(
                "CLOAKROOM_MAIL_FROM",
                "an e-mail address, such as Cloakroom <noreply@example.com>",
                mailbox,
            ),
            password_reset_url: password_reset_url(r),
            log_level: r
                .read("CLOAKROOM_LOG", "info", LOG_LEVELS, own_log_level)
                .unwrap_or(log::LevelFilter::Info),
            log_format: r.choice("CLOAKROOM_LOG_FORMAT", LogFormat::Text),
            shown: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Bytes that the files of all young accounts which registered themselves may have together. Where registrations
    /// are limited, half of the quota is left to others, so that one address cannot fill the service for all.
    pub fn young_storage_quota(&self) -> u64 {
        if self.registrations_per_day == 0 { MAX_BYTES } else { self.storage_quota / 2 }
    }

    /// Every configured secret whose tokens are valid, each with its name for messages.
    pub fn signing_secrets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let current = self.jwt_secret.iter().map(|secret| ("CLOAKROOM_JWT_SECRET", secret));
        let old = self.jwt_old_secrets.iter();
        let old = old.map(|secret| ("a secret in CLOAKROOM_JWT_OLD_SECRETS", secret));
        current.chain(old).map(|(name, secret)| (name, secret.expose()))
    }
}

/// Reads the link in mails about passwords. It defaults to the page of the console, if that and the public URL, which
/// must have been read before, are set.
fn password_reset_url(r: &mut SettingsReader) -> Option<String> {
    let public_url = public_url(r.shown_value("CLOAKROOM_PUBLIC_URL"));
    let has_console = r.shown_value("CLOAKROOM_CONSOLE") == "on";
    let page = public_url.filter(|_| has_console);
    let page = page.map(|url| format!("{url}/console/reset#token={{token}}"));
    let set = r.read(
        "CLOAKROOM_PASSWORD_RESET_URL",
        page.as_deref().unwrap_or_default(),
        "an http or https URL with {token} in it",
        |text| is_reset_url(text).then(|| text.to_owned()),
    );
    set.or(page)
}
