//! Every setting in one table: what it means, the variable it comes from, its type, its default and its limits.
//! `cloakroom config` prints the manual of settings from it, and the Debian package has the same as a sample.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use ipnet::IpNet;
use lettre::message::Mailbox;

use super::mail::{Smtp, has_token, mailbox, public_url};
use super::memory_limit::memory_limit;
use super::provider::{self, ProviderSettings};
use super::reader::{SettingsReader, ShownSetting, UnknownVariable};
use super::store::{self, StoreSettings};
use super::values::{CorsOrigins, ScryptCost, Secret, UploadTypes, networks, own_log_level};
use super::words::{
    AdminSecondFactor, Algorithm, ApiKeyScope, EmailConfirmation, Environment, ErrorFormat,
    HttpServer, LogFormat, LogoutStatus, MetricsAccess, PasswordLogin, Registration,
};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const MINUTES_PER_YEAR: u32 = 365 * 24 * 60;
/// The largest size: an exbibyte, so that the sum of two fits the signed 64 bits of the database.
pub(super) const MAX_BYTES: u64 = 1 << 60;
/// The least budget for bodies in memory, and its largest default.
const MIN_BODY_MEMORY: u64 = 4 << 20;
const MAX_BODY_MEMORY: u64 = 32 << 20;
/// What a connection takes at most, in bytes, beside large bodies.
const CONNECTION_MEMORY: u64 = 128 << 10;
/// Longest issuer, in bytes. Every token contains it, so it must be short.
const MAX_ISSUER: usize = 255;
/// The largest rate limit, in requests a minute, or registrations a day.
const MAX_RATE: u32 = 1_000_000;

/// What the manual says about a setting.
pub struct SettingDescription {
    /// Its variable, and perhaps another one that is read if that is not set.
    pub names: &'static [&'static str],
    /// Its default, in Markdown, if that is not the same everywhere.
    pub default: Option<&'static str>,
    /// The lines of a text in Markdown.
    pub meaning: &'static [&'static str],
}

/// Makes three things of the table below: the struct [`Config`], which has a field for each setting; the function that
/// reads them, in their order; and [`SETTINGS`], which describes them. An entry is
///
/// ```text
/// /// what it means
/// "VARIABLE" or "OTHER_VARIABLE" default "a text about the default" => field: Type = how it is read;
/// ```
///
/// `or` and `default` may be left out. How a setting is read may use the fields above it, and `s`, the reader. An entry
/// without a field is only described: another one reads it.
macro_rules! settings {
    (|$s:ident, $memory_limit:ident| $(
        $(#[doc = $meaning:literal])+
        $name:literal $(or $other:literal)? $(default $default:literal)?
        $(=> $field:ident: $type:ty = $value:expr)?;
    )+) => {
        /// The settings of this process. Sizes are bytes.
        #[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "a provider has two of them"))]
        pub struct Config {
            $($(pub $field: $type,)?)+
            /// The memory limit of the control group, in bytes, if there is one.
            pub memory_limit: Option<u64>,
            /// Whether one of the two settings that say who may export was set, to whatever value.
            pub export_access_is_set: bool,
            /// Each setting that was not refused, as `cloakroom config` prints them.
            pub shown: Vec<ShownSetting>,
            /// Variables that are named like settings but are none.
            pub unknown: Vec<UnknownVariable>,
        }

        impl Config {
            /// Reads every setting. If the reader records a fault, the result has the default.
            pub fn read(reader: &mut SettingsReader) -> Config {
                let memory_limit = memory_limit();
                let $memory_limit = memory_limit;
                $(
                    reader.setting(&[$name $(, $other)?]);
                    $(let $field: $type = {
                        let $s = &mut *reader;
                        $value
                    };)?
                )+
                let export_access_is_set = reader.is_set("CLOAKROOM_EXPORT_REQUIRE_ADMIN")
                    || reader.is_set("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT");
                let (shown, unknown) = (Vec::new(), Vec::new());
                Config { $($($field,)?)+ memory_limit, export_access_is_set, shown, unknown }
            }
        }

        /// Every setting, in the order of the manual.
        pub static SETTINGS: &[SettingDescription] = &[$(SettingDescription {
            names: &[$name $(, $other)?],
            default: settings!(@optional $($default)?),
            meaning: &[$($meaning),+],
        },)+];
    };
    (@optional) => { None };
    (@optional $text:literal) => { Some($text) };
}

settings! { |s, memory_limit|
    /// `development`, or `production`, which refuses unsafe settings
    "CLOAKROOM_ENV" => environment: Environment = s.choice(Environment::Development);
    /// address and port; port 0 picks a free port, which is logged
    "CLOAKROOM_LISTEN" => listen: SocketAddr = s.parsed(
        SocketAddr::from(([127, 0, 0, 1], 8000)),
        "an address and port, such as 127.0.0.1:8000 or [::]:8000",
    );
    /// PostgreSQL connection string: a URL, in whose password `@ : / ? # %` are written as `%40 %3A %2F %3F %23 %25`,
    /// or `key=value` pairs. May have several hosts, `target_session_attrs`, and `sslmode` `disable`, `prefer` or
    /// `require`
    "CLOAKROOM_DATABASE_URL" or "DATABASE_URL" default "required" => database_url: Secret = s.database_url();
    /// PEM file of a certificate authority: requires TLS and verifies the server's certificate
    "CLOAKROOM_DATABASE_CA" => database_ca: Option<PathBuf> = s.read("", "a path", |text| Some(PathBuf::from(text)));
    /// most connections to the database
    "CLOAKROOM_DATABASE_POOL_SIZE" default "2 x cores, at least 8" =>
        database_pool_size: u32 = s.number((2 * cores() as u32).max(8), 1..=10_000);
    /// how long all database queries of a request together may take, with the wait for a connection, of which several
    /// hosts get equal shares. A statement waits for a lock at most half as long; only uploads wait for the quotas for
    /// all of it
    "CLOAKROOM_DATABASE_TIMEOUT_SECONDS" => database_timeout: Duration = s.seconds(5);
    /// `builtin`: Cloakroom's own server, safe to expose. `rouille`: the server of that crate, for use behind a proxy
    "CLOAKROOM_HTTP_SERVER" => http_server: HttpServer = s.choice(HttpServer::Builtin);
    /// threads of the `rouille` server; a kept-alive connection occupies one
    "CLOAKROOM_WORKERS" default "4 x cores, at least 16" =>
        workers: usize = s.number((4 * cores()).max(16), 1..=10_000);
    /// most open client connections; each needs up to three open files, and a connection to the database four. Under a
    /// memory limit of the control group a quarter of it, in parts of 128 KiB, is the default if that is less
    "CLOAKROOM_MAX_CONNECTIONS" default "`1024`, less if the file limit or the memory limit is lower" =>
        max_connections: usize = s.number(
            memory_limit.map_or(1024, |limit| (limit / 4 / CONNECTION_MEMORY).clamp(1, 1024) as usize),
            1..=1_000_000,
        );
    /// most bytes of request and response bodies that are held in memory at once, apart from bodies of up to 32 KiB and
    /// those that are streamed; at least `4M`. Has no effect with the `rouille` server
    "CLOAKROOM_BODY_MEMORY" default "`33554432`, or an eighth of the memory limit of the control group if that is \
        less" =>
        body_memory: u64 = s.size(
            memory_limit.map_or(MAX_BODY_MEMORY, |limit| limit / 8).clamp(MIN_BODY_MEMORY, MAX_BODY_MEMORY),
            MIN_BODY_MEMORY..=MAX_BYTES,
        );
    /// most open connections from one client network (an IPv4 address, an IPv6 /64), and twice as many from an IPv6
    /// /48. Does not apply to this host and to `CLOAKROOM_TRUSTED_PROXIES`, nor with the `rouille` server
    "CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS" => max_connections_per_address: usize = s.number(256, 1..=1_000_000);
    /// longest time from the first byte of a request to the end of its headers
    "CLOAKROOM_HEAD_TIMEOUT_SECONDS" => head_timeout: Duration = s.seconds(10);
    /// longest time between two requests of a connection
    "CLOAKROOM_IDLE_TIMEOUT_SECONDS" => idle_timeout: Duration = s.seconds(60);
    /// longest time that a stop waits for open requests, 1 to 3600; for those of slow clients it is five seconds
    "CLOAKROOM_STOP_SECONDS" => max_stop: Duration = Duration::from_secs(s.number(30, 1..=3600));
    /// who may read `/metrics`: `off`, `loopback` (clients on this host, not through a proxy), `any`; others get 404
    "CLOAKROOM_METRICS" => metrics: MetricsAccess = s.choice(MetricsAccess::Loopback);
    /// `off`: `/docs`, `/redoc` and `/openapi.json` are answered 404
    "CLOAKROOM_DOCS" => docs: bool = s.switch(true);
    /// `on`: `/console` has pages for people. `off`: it is answered 404
    "CLOAKROOM_CONSOLE" default "`on`; in production, and in the core build, `off`" =>
        console: bool = s.switch(cfg!(feature = "extras") && environment == Environment::Development);
    /// where people reach the service, such as `https://files.example.com`: an http or https URL without user, path,
    /// query and fragment; a slash at its end is ignored. The OpenAPI document names it as the server, and links in
    /// mails lead to the console there; nothing is ever made of the `Host` of a request
    "CLOAKROOM_PUBLIC_URL" => public_url: Option<String> = s.read("",
        "an http or https URL without user, path, query and fragment, such as https://files.example.com",
        public_url,
    );
    /// `on`: users see in a list what others have published, `GET /uploads/public`
    "CLOAKROOM_PUBLIC_LIST" => public_list: bool = s.switch(false);
    /// directory of everything outside the database
    "CLOAKROOM_DATA_DIR" => data_dir: PathBuf = s.parsed("./data".to_owned(), "").into();
    /// `s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME`: keeps contents in a store, and not in the data
    /// directory. `&style=host` puts the bucket before the host name, which must not be an address; `http:` is refused
    /// in production unless the host is loopback. Only builds with the cargo feature `s3`, such as the package, accept
    /// it, and only with the builtin server
    "CLOAKROOM_STORAGE_URL" => store: Option<StoreSettings> = store::read(s, environment);
    /// required with `CLOAKROOM_STORAGE_URL`: the id of a key of the store
    "CLOAKROOM_STORAGE_ACCESS_KEY";
    /// the secret of that key
    "CLOAKROOM_STORAGE_SECRET_KEY";
    /// PEM file: the store's certificate is verified against it, and not against the authorities that the system trusts
    "CLOAKROOM_STORAGE_CA";
    /// signs tokens; at least 32, 48 or 64 bytes for HS256, HS384 or HS512; required in production
    "CLOAKROOM_JWT_SECRET" default "made at the first start, kept in the data directory" =>
        jwt_secret: Option<Secret> = s.secret("(made at first start, kept in DATA_DIR/jwt-secret)");
    /// comma-separated secrets whose tokens are valid too, each as long as `CLOAKROOM_JWT_SECRET` must be; for changing
    /// the secret
    "CLOAKROOM_JWT_OLD_SECRETS" => jwt_old_secrets: Vec<Secret> = s.secrets();
    /// if set, tokens carry it as `iss`, and tokens without it are not valid: for deployments that share a secret.
    /// Setting it signs everybody out; at most 255 bytes
    "CLOAKROOM_JWT_ISSUER" => jwt_issuer: Option<String> = s.read("", "at most 255 bytes", |text| {
        (text.len() <= MAX_ISSUER).then(|| text.to_owned())
    });
    /// `HS256`, `HS384`, `HS512`
    "CLOAKROOM_JWT_ALGORITHM" => jwt_algorithm: Algorithm = s.choice(Algorithm::Hs256);
    /// comma-separated texts of at least 32 bytes: the first one seals the secrets of second factors and the links that
    /// confirm addresses, and all of them open these. If there is none, `CLOAKROOM_JWT_SECRET` seals
    "CLOAKROOM_SEAL_KEYS" => seal_keys: Vec<Secret> = s.secrets();
    /// `required`: an administrator without a second factor may do no more than other users, but set one up
    "CLOAKROOM_ADMIN_SECOND_FACTOR" => admin_second_factor: AdminSecondFactor = s.choice(AdminSecondFactor::Optional);
    /// lifetime of access tokens
    "CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES" or "ACCESS_TOKEN_EXPIRE_MINUTES" =>
        access_token_lifetime: Duration = MINUTE * s.number(60, 1..=10 * MINUTES_PER_YEAR);
    /// lifetime of refresh tokens
    "CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS" => refresh_token_lifetime: Duration = DAY * s.number(7, 1..=3650);
    /// how long a refresh token that was just used still works
    "CLOAKROOM_REFRESH_REUSE_SECONDS" => refresh_reuse: Duration = s.seconds(10);
    /// days after its sign-in after which a session ends, however often it is refreshed; also applies to existing
    /// sessions
    "CLOAKROOM_SESSION_MAX_DAYS" => session_max_age: Duration = DAY * s.number(90, 1..=3650);
    /// lifetime of reset tokens
    "CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES" =>
        password_reset_lifetime: Duration = MINUTE * s.number(30, 1..=MINUTES_PER_YEAR);
    /// whether `PUT /users/me` with another `email` needs `current_password`: then a stolen access token is not enough
    /// to take over the account
    "CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD" => email_change_requires_password: bool = s.flag(false);
    /// cost of password hashes: log2 N, r, p; the default takes 16 MiB a hash. A hash of another cost is replaced at
    /// the next sign-in
    "CLOAKROOM_SCRYPT" => scrypt: ScryptCost = s.parsed(
        ScryptCost { log_n: 14, r: 8, p: 5 },
        "log2 N (1 to 24), r (1 to 32) and p (1 to 64), at most 1 GiB a hash, such as 14,8,5",
    );
    /// `off`: only administrators make accounts, and `POST /auth/register` is answered 404
    "CLOAKROOM_REGISTRATION" => registration: Registration = s.choice(Registration::Open);
    /// `required`: whoever registers must confirm the e-mail address within 48 hours, which makes the account, and
    /// another address of one's own account counts only then. Needs mail
    "CLOAKROOM_EMAIL_CONFIRMATION" => email_confirmation: EmailConfirmation = s.choice(EmailConfirmation::Off);
    /// accounts that one client address may register in a day (in IPv6 each /64, and eight times as many for each /48),
    /// then 429; 0 is no limit. Counted by each process since its start. Does not apply without rate limits, nor to
    /// requests from this host that come through no trusted proxy
    "CLOAKROOM_REGISTRATIONS_PER_DAY" default "`0`; in production `50`" =>
        registrations_per_day: u32 = s.number(
            if environment == Environment::Production { 50 } else { 0 },
            0..=MAX_RATE,
        );
    /// the OpenID provider by which people sign in, such as `https://login.example.com`, exactly as its ID tokens name
    /// it; in development also http to this host. Only builds with the cargo feature `oidc`, such as the package,
    /// accept it, with the console and `CLOAKROOM_PUBLIC_URL`, which must be https if this is. The provider must know
    /// `{CLOAKROOM_PUBLIC_URL}/api/v1/auth/oidc/callback` as the redirect URI of its client
    "CLOAKROOM_OIDC_ISSUER" => provider: Option<ProviderSettings> = provider::read(s, environment);
    /// required with `CLOAKROOM_OIDC_ISSUER`: the client that the service is for the provider
    "CLOAKROOM_OIDC_CLIENT_ID";
    /// the secret of that client
    "CLOAKROOM_OIDC_CLIENT_SECRET";
    /// PEM file: the provider's certificate is verified against it, and not against the authorities that the system
    /// trusts
    "CLOAKROOM_OIDC_CA";
    /// what people know the provider as, in place of its host
    "CLOAKROOM_OIDC_NAME";
    /// `all`: the provider is one's own, and the addresses that it gives are believed without `email_verified`
    "CLOAKROOM_OIDC_EMAILS";
    /// domains, with commas between: only people with an address there get an account by signing in
    "CLOAKROOM_OIDC_DOMAINS";
    /// `CLAIM:TEXT`: at each sign-in by the provider, whoever has this text in the claim, or in the list that it is,
    /// becomes an administrator, and whoever has it not is none any more, but for the last one
    "CLOAKROOM_OIDC_ADMIN_CLAIM";
    /// what the provider is asked for
    "CLOAKROOM_OIDC_SCOPES";
    /// `on`: whoever signs in by the provider and has no account gets one, if the provider confirms an e-mail address
    "CLOAKROOM_OIDC_REGISTRATION" => oidc_registration: bool = s.switch(false);
    /// hours after its sign-in after which a session ends that the provider has opened, however often it is refreshed
    "CLOAKROOM_OIDC_SESSION_HOURS" =>
        oidc_session: Duration = MINUTE * 60 * s.number(168, 1..=87_600);
    /// `admins`: only administrators sign in with a password, others by the OpenID provider, and nobody registers
    "CLOAKROOM_PASSWORD_LOGIN" => password_login: PasswordLogin = s.choice(PasswordLogin::On);
    /// `false`: every request acts as the development admin. That account is not listed, counted or exported, and
    /// cannot be changed
    "CLOAKROOM_AUTH_ENABLED" => auth_enabled: bool = s.flag(true);
    /// whether `X-API-Key` is required. If it is, but there is no key, the service starts, logs an error, and answers
    /// 500 instead of asking for the key
    "CLOAKROOM_API_KEY_ENABLED" => api_key_enabled: bool = s.flag(false);
    /// one key, or several with commas between them, so that keys can be rotated
    "CLOAKROOM_API_KEY" => api_keys: Vec<Secret> = s.secrets();
    /// which endpoints require the key: `exports`, or `all` of those below `/api/v1`
    "CLOAKROOM_API_KEY_SCOPE" => api_key_scope: ApiKeyScope = s.choice(ApiKeyScope::Exports);
    /// file with a password a line, at most 64 MiB, which nobody may set; upper and lower case make no difference. In
    /// production 2,000 of the most used passwords are refused as well
    "CLOAKROOM_REFUSED_PASSWORDS" =>
        refused_passwords: Option<PathBuf> = s.read("", "a path", |text| Some(PathBuf::from(text)));
    /// whether exports need an admin's token
    "CLOAKROOM_EXPORT_REQUIRE_ADMIN" => export_require_admin: bool = s.flag(false);
    /// whether exports need no token
    "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT" => allow_anonymous_export: bool = s.flag(false);
    /// an export with more rows is answered 413
    "CLOAKROOM_EXPORT_MAX_ROWS" => export_max_rows: u32 = s.number(1_000_000, 1..=1_000_000_000);
    /// an export whose first rows take longer, including the wait for other exports, is answered 504; each later batch
    /// of rows may take as long
    "CLOAKROOM_EXPORT_TIMEOUT_SECONDS" => export_timeout: Duration = s.seconds(60);
    /// largest file, in bytes, or with a unit: `10M`
    "CLOAKROOM_MAX_UPLOAD_SIZE" or "MAX_UPLOAD_SIZE" => max_upload_size: u64 = s.size(10 << 20, 1..=MAX_BYTES);
    /// types of files that are accepted, also under other names such as `image/jpg`; `image/*` takes all pictures, SVG
    /// too; `any`, alone, takes every file
    "CLOAKROOM_ALLOWED_UPLOAD_TYPES" => allowed_upload_types: UploadTypes = s.parsed(
        UploadTypes::new(&["image/jpeg", "image/png", "application/pdf", "text/plain"]),
        "comma-separated types without parameters, at most 100 characters each, such as image/png,text/*, or `any` \
         alone",
    );
    /// most bytes of all files together, of which new users share half. While three quarters of it or more are used,
    /// all uploads wait for each other as they record their files; before, only those of files larger than an eighth of
    /// it divided by PostgreSQL's `max_connections` (100 by default, so 12.8 MiB)
    "CLOAKROOM_STORAGE_QUOTA" => storage_quota: u64 = s.size(10 << 30, 1..=MAX_BYTES);
    /// most bytes of one user's files together
    "CLOAKROOM_USER_STORAGE_QUOTA" => user_storage_quota: u64 = s.size(1 << 30, 1..=MAX_BYTES);
    /// most files of one user
    "CLOAKROOM_USER_FILE_QUOTA" => user_file_quota: u32 = s.number(100_000, 1..=1_000_000_000);
    /// days for which deleted files can be restored, 0 for none, and for which contents without a record are kept in
    /// `DATA_DIR/trash/`, or in the store
    "CLOAKROOM_TRASH_DAYS" => trash_days: u32 = s.number(7, 0..=3650);
    /// most bytes of all deleted files that can still be restored; each user's are limited by the user's quotas
    "CLOAKROOM_DELETED_QUOTA" default "a quarter of the bytes that all files may have" =>
        deleted_quota: u64 = s.size(storage_quota / 4, 1..=MAX_BYTES);
    /// days for which events of the audit log are kept; failures 30 at most
    "CLOAKROOM_AUDIT_DAYS" => audit_days: u32 = s.number(365, 1..=36_500);
    /// whether requests are limited
    "CLOAKROOM_RATE_LIMIT_ENABLED" => rate_limit_enabled: bool = s.flag(true);
    /// requests a minute for each endpoint that takes passwords or tokens, and each client address (in IPv6 each /64,
    /// and eight times as many for each /48). But a refresh with a valid token counts for its session, and a request
    /// with the current password for its session and, with four times the limit, for its address
    "CLOAKROOM_RATE_LIMIT_AUTH" => rate_limit_auth: u32 = s.number(5, 1..=MAX_RATE);
    /// uploads a minute of each user
    "CLOAKROOM_RATE_LIMIT_UPLOAD" => rate_limit_upload: u32 = s.number(10, 1..=MAX_RATE);
    /// other requests a minute of each user
    "CLOAKROOM_RATE_LIMIT_GENERAL" => rate_limit_general: u32 = s.number(100, 1..=MAX_RATE);
    /// requests a minute for administration by each admin
    "CLOAKROOM_RATE_LIMIT_ADMIN" => rate_limit_admin: u32 = s.number(200, 1..=MAX_RATE);
    /// requests a minute from one client address, by anonymous callers and by accounts younger than seven days
    /// together; 0 is no limit. Does not apply to refreshes, to signing out, to requests below `/auth/sessions` and
    /// `/auth/tokens`, and to requests from this host that come through no trusted proxy
    "CLOAKROOM_RATE_LIMIT_ADDRESS" => rate_limit_address: u32 = s.number(3000, 0..=MAX_RATE);
    /// addresses or CIDR blocks whose `X-Forwarded-For` is believed
    "CLOAKROOM_TRUSTED_PROXIES" => trusted_proxies: Vec<IpNet> = s
        .read("", "comma-separated addresses or CIDR blocks, such as 10.0.0.0/8", networks)
        .unwrap_or_default();
    /// origins whose web pages may use the API, with credentials if they ask for that; or `*`: any origin, without
    "CLOAKROOM_CORS_ORIGINS" => cors_origins: CorsOrigins = s
        .read("", "comma-separated origins, such as https://app.example.com, or *", CorsOrigins::parse)
        .unwrap_or(CorsOrigins::Off);
    /// enables endpoints that help to test clients; one of them deletes all users
    "CLOAKROOM_TEST_ENDPOINTS_ENABLED" => test_endpoints_enabled: bool = s.flag(false);
    /// `200`: a sign-out is answered with a message; `204`: without a body
    "CLOAKROOM_LOGOUT_STATUS" => logout_status: LogoutStatus = s.choice(LogoutStatus::NoContent);
    /// shape of error bodies: `detail` or `envelope`
    "CLOAKROOM_ERROR_FORMAT" => error_format: ErrorFormat = s.choice(ErrorFormat::Detail);
    /// mail server, `smtps://user:password@host:465` (encrypted from the start) or `smtp://user:password@host:587`
    /// (`STARTTLS` if it is offered); without a port 465 and 25, and without `user:password@` the service does not sign
    /// in. `@ : / %` in the user and the password are written as `%40 %3A %2F %25`. A password is not sent unencrypted,
    /// except to this host; certificates are always verified, against the authorities that the system trusts or those
    /// in the file that `SSL_CERT_FILE` names. The word `none` switches password resets off
    "CLOAKROOM_SMTP_URL" => smtp: Smtp = s
        .optional_hidden(
            "none, smtp://host:port or smtps://user:password@host:port",
            Smtp::parse,
            |_, smtp: &Smtp| smtp.to_string(),
        )
        .unwrap_or(Smtp::Unset);
    /// sender of mails, such as `Cloakroom <noreply@example.com>`; without it and the next one no mail is sent
    "CLOAKROOM_MAIL_FROM" =>
        mail_from: Option<Mailbox> = s.read("", "an e-mail address, such as Cloakroom <noreply@example.com>", mailbox);
    /// link in the mail, an http or https URL in which `{token}` is replaced by the token. With the console and
    /// `CLOAKROOM_PUBLIC_URL` it defaults to the console's page
    "CLOAKROOM_PASSWORD_RESET_URL" =>
        password_reset_url: Option<String> = link_in_mail(s, console, public_url.as_deref(), "reset");
    /// the same for the link that confirms an e-mail address
    "CLOAKROOM_EMAIL_CONFIRMATION_URL" =>
        email_confirmation_url: Option<String> = link_in_mail(s, console, public_url.as_deref(), "confirm");
    /// level of Cloakroom's own log records; of libraries only warnings and errors are logged
    "CLOAKROOM_LOG" or "RUST_LOG" =>
        log_level: log::LevelFilter = s
            .read("info", "off, error, warn, info, debug or trace", own_log_level)
            .unwrap_or(log::LevelFilter::Info);
    /// `text` or `json`, one line for each record
    "CLOAKROOM_LOG_FORMAT" => log_format: LogFormat = s.choice(LogFormat::Text);
}

/// The cores of this machine.
fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Reads a link in mails. It defaults to this page of the console, if that and the public URL are set.
fn link_in_mail(
    s: &mut SettingsReader,
    has_console: bool,
    public_url: Option<&str>,
    page: &str,
) -> Option<String> {
    let public_url = public_url.filter(|_| has_console);
    let page = public_url.map(|url| format!("{url}/console/{page}#token={{token}}"));
    let set = s.read(
        page.as_deref().unwrap_or_default(),
        "an http or https URL with {token} in it",
        |text| has_token(text).then(|| text.to_owned()),
    );
    set.or(page)
}
