//! `cloakroom doctor`: looks at everything that the service depends on, and at the service itself, and says what is
//! wrong and what to do about it. It takes back whatever it changes to see whether it can, and whatever is wrong with
//! one thing does not keep it from looking at the others.

use std::io::{self, ErrorKind, Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use log::Level::{Error, Info, Warn};
use serde_json::Value;

use super::database::{self, DedicatedConnection};
use super::output::{Findings, bytes};
use super::postgres_programs::major_version;
use super::send_test_mail::advice;
use super::{require_store, within_max_wait};
use crate::accounts::statements as accounts;
use crate::auth::refused_passwords::RefusedPasswords;
use crate::config::{Config, MailServer, Smtp, UsedSettings};
use crate::db::installation::DatabaseSide;
use crate::db::migrations::newest_schema_version;
use crate::db::{self, sql};
use crate::mail::{MailError, smtp};
#[cfg(feature = "oidc")]
use crate::openid::Provider;
#[cfg(feature = "oidc")]
use crate::serve::provider;
use crate::serve::warnings::{self, Finding};
use crate::serve::{ignore_file_size_signal, imported_hashes, installation};
use crate::storage::{Storage, directory, refuse_partial};

/// The longest wait for a connection to the database, if the settings allow longer ones, and for one to the service
/// and each piece of its answer.
const MAX_CONNECT: Duration = Duration::from_secs(5);
/// How long the dialogue with the mail server may take.
const MAX_DIALOGUE: Duration = Duration::from_secs(10);
/// More than the service ever answers.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;
/// The oldest major version of PostgreSQL with which all works: its `pg_dump` has `--extension`.
const MIN_POSTGRES: u32 = 14;
/// The part of the file system, in percent, that should be free.
const MIN_FREE_PERCENT: u64 = 10;

/// Prints the findings. A setting that is refused has its default for the rest. Fails if there are faults.
pub fn doctor() -> Result<(), String> {
    let (mut config, refused) = Config::from_environment(UsedSettings::All, db::check_settings);
    ignore_file_size_signal()?;
    config.database_timeout = config.database_timeout.min(MAX_CONNECT);
    let config = Arc::new(config);
    let mut findings = Findings::new(true);
    check_settings(&mut findings, &config, &refused);
    let database = check_database(&mut findings, &config);
    if let Err(fault) = check_contents(&mut findings, &config, database.as_ref()) {
        findings.fault(format_args!("contents: {fault}"));
    }
    #[cfg(feature = "oidc")]
    check_provider(&mut findings, &config);
    let (level, text, advice) = check_mail(&config);
    findings.report(level, format_args!("mail: {text}"), advice);
    if config.listen.port() != 0 {
        check_service(&mut findings, config.listen);
    }
    findings.finish()
}

/// Reports settings that are refused, and those that are probably not intended.
fn check_settings(findings: &mut Findings, config: &Config, refused: &[String]) {
    let set = config.shown.iter().filter(|setting| setting.variable.is_some()).count();
    findings.ok(format_args!("settings: {set} are set; `cloakroom config` shows all"));
    let unusable_file = RefusedPasswords::load(config).err();
    for fault in refused.iter().chain(&unusable_file) {
        findings.fault(format_args!("settings: {fault}"));
    }
    let found = warnings::find(config).into_iter();
    findings.print(found.map(|(level, text, advice)| (level, format!("settings: {text}"), advice)));
}

/// Reports on the server and the schema. Returns the database's side of the comparison with the contents, if it has
/// one.
fn check_database(findings: &mut Findings, config: &Arc<Config>) -> Option<DatabaseSide> {
    if db::check_settings(config).is_err() {
        findings.warning("database: not looked at, because its settings are wrong");
        return None;
    }
    let settings = config.clone();
    let answer = within_max_wait(move || {
        let mut found = check_server(&settings)?;
        let (of_schema, side) = check_schema(&settings)
            .unwrap_or_else(|reason| (vec![(Error, format!("schema: {reason}"), "")], None));
        found.extend(of_schema);
        Ok((found, side))
    });
    let (found, side) = match answer.unwrap_or_else(|| Err("no answer in time".to_owned())) {
        Ok(found) => found,
        Err(reason) => {
            let advice = "Check CLOAKROOM_DATABASE_URL and CLOAKROOM_DATABASE_CA, whether the server runs, its \
                          pg_hba.conf and its log, firewalls, and the look-up of names (DNS).";
            (vec![(Error, format!("database: {reason}"), advice)], None)
        }
    };
    findings.print(found);
    side
}

/// Looks at the server, and at what it lets the role of the settings do. Connects without the pool, which would try
/// again for a while and not say why a connection fails.
fn check_server(config: &Config) -> Result<Vec<Finding>, String> {
    let mut connection = DedicatedConnection::open(config)?;
    let row = connection.query_one(sql!("tools/database/facts"))?;
    // This fails for every role on a full disk, or where transactions are read-only.
    let failure = connection.execute(sql!("tools/database/try_page")).err();
    let (version, role): (&str, &str) = (row.get("version"), row.get("role"));
    let text = format!("database: PostgreSQL {version} at {}", connection.server);
    let mut found = Vec::new();
    let mut fault = |what: &str, advice| found.push((Error, format!("{text} {what}"), advice));
    if major_version(version).is_some_and(|major| major < MIN_POSTGRES) {
        fault("is too old", "Upgrade PostgreSQL to 15 or 17.");
    }
    if row.get("is_standby") {
        fault(
            "is a standby, which takes no changes",
            "Name all servers in CLOAKROOM_DATABASE_URL and add target_session_attrs=read-write, which finds the \
             primary; or promote this one if the primary is lost.",
        );
    } else if let Some(failure) = failure {
        fault(
            &format!("takes no changes: {failure}"),
            "Make room on its disk. If transactions are read-only, set default_transaction_read_only to off, for the \
             server, the database and the role.",
        );
    }
    // May it change rows or, in an empty database, make tables?
    if !row.get::<_, bool>("may_change") {
        fault(
            &format!("lets the role {role} change nothing"),
            "Let this role own the database: `ALTER DATABASE ... OWNER TO ...`, and the same for its tables.",
        );
    }
    if found.is_empty() {
        found.push((Info, format!("{text} takes changes of the role {role}"), ""));
    }
    Ok(found)
}

/// Looks at the version of the schema and, unless it is older, at the number of accounts and at the second factors.
/// Returns the database's side too. Fails if the schema does not suit this program.
fn check_schema(config: &Config) -> Result<(Vec<Finding>, Option<DatabaseSide>), String> {
    let db = database::open(config)?;
    let (applied, newest) = (database::applied_version(&db)?, newest_schema_version());
    if applied < newest {
        let finding = if applied == 0 {
            let advice = "The first start of the service makes the schema. If there should be data, check \
                          CLOAKROOM_DATABASE_URL.";
            let tables = db.read(sql!("tools/restore/find_tables"), &[])?;
            match tables.first().map(|row| row.get::<_, &str>("name")) {
                None => (Warn, "schema: the database is empty".to_owned(), advice),
                Some(name) => (
                    Warn,
                    format!("schema: there is none, but tables of another program, such as {name}"),
                    "Name an empty database in CLOAKROOM_DATABASE_URL.",
                ),
            }
        } else {
            let text =
                format!("schema: version {applied}, and this program makes version {newest}");
            let advice = "The next start of the service, or `cloakroom migrate`, applies what is missing. Make a \
                          backup before.";
            (Warn, text, advice)
        };
        return Ok((vec![finding], None));
    }
    let side = db::installation::find(&db)?;
    let accounts = accounts::count(&db)?;
    let (all, sealed) = database::count_second_factors(&db, config)?;
    let mut found = vec![(Info, format!("schema: version {applied} suits this program"), "")];
    if accounts == 0 {
        let advice = "Make an administrator: `cloakroom create-admin --email you@example.com --username admin`.";
        found.push((Warn, "accounts: there are none".to_owned(), advice));
    }
    found.extend(imported_hashes::find(config, &db)?);
    if sealed > 0 {
        found.push((
            Error,
            format!("second factors: no key opens {sealed} of {all}, so only recovery codes serve their users"),
            "Add the key that sealed them to CLOAKROOM_SEAL_KEYS, or the former CLOAKROOM_JWT_SECRET to \
             CLOAKROOM_JWT_OLD_SECRETS. If it is lost, an administrator can take them away.",
        ));
    } else if all > 0 {
        found.push((Info, format!("second factors: the keys open all {all}"), ""));
    }
    Ok((found, Some(side)))
}

/// Looks at the data directory, the store if there is one, the room, and whether they belong to the database. To see
/// whether a directory takes files, one is written to it and removed. On failure: what keeps contents from being used.
fn check_contents(
    findings: &mut Findings,
    config: &Config,
    database: Option<&DatabaseSide>,
) -> Result<(), String> {
    refuse_partial(&config.data_dir)?;
    let storage = Storage::at(config)?;
    for path in iter::once(config.data_dir.as_path()).chain(storage.directories()) {
        let shown = path.display();
        if path.exists() {
            directory::check(path).map_err(|fault| format!("{shown} {fault}"))?;
            continue;
        }
        // After a restoration only those of the contents are there.
        let is_of_contents = path == config.data_dir || Some(path) == storage.content_directory();
        if is_of_contents && database.is_some_and(|side| side.has_files) {
            return Err(format!(
                "{shown} does not exist, and the database has records of files: check CLOAKROOM_DATA_DIR and what is \
                 mounted there, or restore the directory from a backup"
            ));
        }
        let text = format_args!("contents: {shown} does not exist");
        findings.report(Warn, text, "The first start of the service makes it.");
        if is_of_contents {
            return Ok(());
        }
    }
    require_store(&storage)?;
    let place = storage.place().0;
    findings.ok(format_args!("contents: {place} can be read and written"));
    check_room(findings, &storage);
    let Some(side) = database else { return Ok(()) };
    match installation::compare(side, &storage)?.of_contents {
        Some(id) if side.id == Some(id) => {
            findings.ok(format_args!("installation id: {id}, in the database and in {place}"));
        }
        _ => findings
            .ok("installation id: the next start of the service gives it to whoever has none"),
    }
    Ok(())
}

/// Asks the OpenID provider, if there is one, what it says of itself, and counts the accounts that it does not serve.
#[cfg(feature = "oidc")]
fn check_provider(findings: &mut Findings, config: &Arc<Config>) {
    let Some(settings) = config.provider.clone() else { return };
    let known = config.clone();
    let look = move || {
        let provider = Provider::new(&settings)?;
        let mut found = provider::ask(&provider, &known);
        if let Ok(db) = database::open(&known) {
            found.extend(provider::count(&provider, &known, &db).unwrap_or_default());
        }
        Ok(found)
    };
    match within_max_wait(look).unwrap_or_else(|| Err("no answer in time".to_owned())) {
        Ok(found) => findings.print(found),
        Err(fault) => findings.fault(format_args!("provider: {fault}")),
    }
}

/// Reports how many bytes are free where contents are written.
fn check_room(findings: &mut Findings, storage: &Storage) {
    let Ok(space) = storage.disk_space() else { return };
    let is_full = space.free_bytes < space.total_bytes / 100 * MIN_FREE_PERCENT;
    findings.report(
        if is_full { Warn } else { Info },
        format_args!("disk: {} of {} are free", bytes(space.free_bytes), bytes(space.total_bytes)),
        "Free room or enlarge the file system before uploads fail.",
    );
}

/// Connects to the mail server, if there is one, and signs in, but sends nothing.
fn check_mail(config: &Config) -> Finding {
    let server = match &config.smtp {
        Smtp::Server(server) => server.clone(),
        Smtp::Off => {
            return (Info, "CLOAKROOM_SMTP_URL is none, so no mail is sent".to_owned(), "");
        }
        Smtp::Unset => {
            return (
                Info,
                "no server is known, so the log has what a mail would have".to_owned(),
                "",
            );
        }
    };
    let (shown, is_local) = (server.url.clone(), server.is_local());
    match within_max_wait(move || session_encryption(&server)) {
        Some(Ok(None)) if !is_local => (
            Warn,
            format!("{shown} answers, and offers no encryption"),
            "The links in messages about passwords can be read on their way: use smtps:// with port 465, or a port on \
             which the server offers STARTTLS, usually 587.",
        ),
        Some(Ok(version)) => {
            let version = version.unwrap_or_else(|| "without encryption, on this host".to_owned());
            (Info, format!("{shown} takes mail ({version})"), "")
        }
        Some(Err(error)) => (Error, format!("{shown}: {error}"), advice(&error)),
        None => (
            Error,
            format!("{shown}: no answer in time"),
            "Check the host in CLOAKROOM_SMTP_URL, and whether this system can look its name up.",
        ),
    }
}

/// Signs in to the server and ends the session. Returns the version of TLS; `None` if the session was not encrypted.
fn session_encryption(server: &MailServer) -> Result<Option<String>, MailError> {
    let mut observe = |_: &str| {};
    let mut session = smtp::open_session(server, Instant::now() + MAX_DIALOGUE, &mut observe)?;
    let version = session.stream.tls_version();
    session.quit();
    Ok(version)
}

/// Asks the service whether it is ready, at the address on which it listens by the settings.
fn check_service(findings: &mut Findings, address: SocketAddr) {
    let answer = within_max_wait(move || ask_service(address));
    let (level, text, advice) = match answer.unwrap_or_else(|| Err(ErrorKind::TimedOut.into())) {
        Ok(body) if body["status"] == "ok" => (Info, "is ready".to_owned(), ""),
        Ok(body) => (Error, format!("is not as it should be: {body}"), "See its log."),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            (Warn, "is not in use: nothing listens there".to_owned(), "Start it, or see its log.")
        }
        Err(e) => (
            Error,
            format!("does not answer, or something else listens: {e}"),
            "See its log, and who has the port: `ss --listening --tcp --processes`.",
        ),
    };
    findings.report(level, format_args!("service: {address} {text}"), advice);
}

/// Asks the service whether it is ready, and returns the body of its response.
fn ask_service(address: SocketAddr) -> io::Result<Value> {
    let mut stream = TcpStream::connect_timeout(&address, MAX_CONNECT)?;
    stream.set_read_timeout(Some(MAX_CONNECT))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}
