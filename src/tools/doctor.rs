//! `cloakroom doctor`: looks at everything that the service depends on, and at the service itself, and says what is
//! wrong and what to do about it. It takes back whatever it changes to see whether it can, and whatever is wrong with
//! one thing does not keep it from looking at the others.

use std::io::{self, ErrorKind, Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::database::{self, DedicatedConnection};
use super::output::{Findings, Level, bytes};
use super::postgres_programs::major_version;
use super::send_test_mail::advice;
use super::{require_store, within_max_wait};
use crate::accounts;
use crate::auth::refused_passwords::RefusedPasswords;
use crate::config::{Config, MailServer, Smtp, UsedSettings};
use crate::db::installation::DatabaseSide;
use crate::db::migrations::newest_schema_version;
use crate::db::{self, sql};
use crate::mail::{MailError, smtp};
use crate::serve::{ignore_file_size_signal, installation, warnings};
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
    judge_settings(&mut findings, &config, &refused);
    let database = judge_database(&mut findings, &config);
    if let Err(fault) = judge_contents(&mut findings, &config, database.as_ref()) {
        findings.fault(format_args!("contents: {fault}"), "");
    }
    judge_mail(&mut findings, &config);
    judge_service(&mut findings, config.listen);
    findings.finish()
}

/// Reports settings that are refused, and those that are probably not intended.
fn judge_settings(findings: &mut Findings, config: &Config, refused: &[String]) {
    let set = config.shown.iter().filter(|setting| setting.variable.is_some()).count();
    findings.ok(format_args!("settings: {set} are set; `cloakroom config` shows all"));
    for fault in refused {
        findings.fault(format_args!("settings: {fault}"), "");
    }
    if let Err(fault) = RefusedPasswords::load(config) {
        findings.fault(format_args!("settings: {fault}"), "");
    }
    for (level, text, advice) in warnings::find(config) {
        let is_fault = level == log::Level::Error;
        let level = if is_fault { Level::Fault } else { Level::Warning };
        findings.report(level, format_args!("settings: {text}"), advice);
    }
}

/// Asks the database, and judges the answers. Returns its side of the comparison with the contents, if it has one.
fn judge_database(findings: &mut Findings, config: &Arc<Config>) -> Option<DatabaseSide> {
    if db::check_settings(config).is_err() {
        findings.warning("database: not looked at, because its settings are wrong", "");
        return None;
    }
    let settings = config.clone();
    let answer = within_max_wait(move || {
        let server = ask_server(&settings)?;
        Ok((server, ask_schema(&settings)))
    });
    let answer = answer.unwrap_or_else(|| Err("no answer in time".to_owned()));
    match answer {
        Err(reason) => findings.fault(
            format_args!("database: {reason}"),
            "Check CLOAKROOM_DATABASE_URL and CLOAKROOM_DATABASE_CA, whether the server runs, its pg_hba.conf and its \
             log, firewalls, and the look-up of names (DNS).",
        ),
        Ok((server, schema)) => {
            judge_server(findings, &server);
            match schema {
                Ok(schema) => return judge_schema(findings, schema),
                Err(reason) => findings.fault(format_args!("schema: {reason}"), ""),
            }
        }
    }
    None
}

/// A server that answers, and what it lets the role of the settings do.
struct Server {
    /// Host and port; of several servers all.
    name: String,
    /// The version of PostgreSQL, such as `17.5`.
    version: String,
    role: String,
    is_standby: bool,
    /// Whether the role may change rows or, in an empty database, make tables.
    may_change: bool,
    /// Why a change fails that every role may make, as on a full disk, or where transactions are read-only.
    failure: Option<String>,
}

/// Connects, without the pool, which would try again for a while and not say why a connection fails.
fn ask_server(config: &Config) -> Result<Server, String> {
    let mut connection = DedicatedConnection::open(config)?;
    let row = connection.query_one(sql!("database/facts"))?;
    let failure = connection.execute(sql!("database/try_page")).err();
    Ok(Server {
        name: connection.server,
        version: row.get("version"),
        role: row.get("role"),
        is_standby: row.get("is_standby"),
        failure,
        may_change: row.get("may_change"),
    })
}

/// The state of the schema and of what depends on it.
struct Schema {
    /// The version of the schema; 0 if the database has none.
    applied: i32,
    /// `None` if the database has no schema.
    installation: Option<DatabaseSide>,
    /// Whether the schema is this program's, and nobody has an account.
    lacks_accounts: bool,
    /// How many second factors there are, and how many of them no key opens. Not counted with an older schema.
    second_factors: (usize, usize),
}

/// Looks at the schema. Fails if it does not suit this program.
fn ask_schema(config: &Config) -> Result<Schema, String> {
    let db = database::open(config)?;
    let applied = database::applied_version(&db)?;
    let is_current = applied >= newest_schema_version();
    Ok(Schema {
        applied,
        installation: is_current.then(|| db::installation::find(&db)).transpose()?,
        lacks_accounts: is_current && accounts::statements::count(&db)? == 0,
        second_factors: if is_current {
            database::count_second_factors(&db, config)?
        } else {
            (0, 0)
        },
    })
}

fn judge_server(findings: &mut Findings, server: &Server) {
    let Server { name, version, role, .. } = server;
    let text = format!("database: PostgreSQL {version} at {name}");
    let is_old = major_version(version).is_some_and(|major| major < MIN_POSTGRES);
    let faults = [
        (is_old, "is too old".to_owned(), "Upgrade PostgreSQL to 15 or 17."),
        (
            server.is_standby,
            "is a standby, which takes no changes".to_owned(),
            "Name all servers in CLOAKROOM_DATABASE_URL and add target_session_attrs=read-write, which finds the \
             primary; or promote this one if the primary is lost.",
        ),
        (
            server.failure.is_some() && !server.is_standby,
            format!("takes no changes: {}", server.failure.as_deref().unwrap_or_default()),
            "Make room on its disk. If transactions are read-only, set default_transaction_read_only to off, for the \
             server, the database and the role.",
        ),
        (
            !server.may_change,
            format!("lets the role {role} change nothing"),
            "Let this role own the database: `ALTER DATABASE ... OWNER TO ...`, and the same for its tables.",
        ),
    ];
    let mut faults = faults.into_iter().filter(|(is_fault, ..)| *is_fault).peekable();
    if faults.peek().is_none() {
        findings.ok(format_args!("{text} takes changes of the role {role}"));
    }
    faults.for_each(|(_, fault, advice)| findings.fault(format_args!("{text} {fault}"), advice));
}

/// Judges the version of the schema, the number of accounts and the second factors, and returns the database's side.
fn judge_schema(findings: &mut Findings, schema: Schema) -> Option<DatabaseSide> {
    let Schema { applied, installation, lacks_accounts, second_factors } = schema;
    let newest = newest_schema_version();
    match applied {
        0 => findings.warning(
            "schema: the database is empty",
            "The first start of the service makes the schema. If there should be data, check CLOAKROOM_DATABASE_URL.",
        ),
        _ if applied < newest => findings.warning(
            format_args!("schema: version {applied}, and this program makes version {newest}"),
            "The next start of the service, or `cloakroom migrate`, applies what is missing. Make a backup before.",
        ),
        _ => findings.ok(format_args!("schema: version {applied} suits this program")),
    }
    if lacks_accounts {
        findings.warning(
            "accounts: there are none",
            "Make an administrator: `cloakroom create-admin --email you@example.com --username admin`.",
        );
    }
    match second_factors {
        (0, _) => {}
        (all, 0) => findings.ok(format_args!("second factors: the keys open all {all}")),
        (all, sealed) => findings.fault(
            format_args!(
                "second factors: no key opens {sealed} of {all}, so only recovery codes serve their users"
            ),
            "Add the key that sealed them to CLOAKROOM_SEAL_KEYS, or the former CLOAKROOM_JWT_SECRET to \
             CLOAKROOM_JWT_OLD_SECRETS. If it is lost, an administrator can take them away.",
        ),
    }
    installation
}

/// Judges the data directory, the store if there is one, the room, and whether they belong to the database. To see
/// whether a directory takes files, one is written to it and removed. On failure: what keeps contents from being used.
fn judge_contents(
    findings: &mut Findings,
    config: &Config,
    database: Option<&DatabaseSide>,
) -> Result<(), String> {
    refuse_partial(&config.data_dir)?;
    let storage = Storage::at(config)?;
    let has_files = database.is_some_and(|side| side.has_files);
    for path in iter::once(config.data_dir.as_path()).chain(storage.directories()) {
        let shown = path.display();
        if path.exists() {
            directory::check(path).map_err(|fault| format!("{shown} {fault}"))?;
            continue;
        }
        // After a restoration only those of the contents are there.
        let is_of_contents = path == config.data_dir || Some(path) == storage.content_directory();
        if has_files && is_of_contents {
            return Err(format!(
                "{shown} does not exist, and the database has records of files: check CLOAKROOM_DATA_DIR and what is \
                 mounted there, or restore the directory from a backup"
            ));
        }
        findings.warning(
            format_args!("contents: {shown} does not exist"),
            "The first start of the service makes it.",
        );
        if is_of_contents {
            return Ok(());
        }
    }
    require_store(&storage)?;
    let place = storage.place().0;
    findings.ok(format_args!("contents: {place} can be read and written"));
    judge_room(findings, &storage);
    let Some(side) = database else { return Ok(()) };
    let agreement = installation::compare(side, &storage)?;
    match agreement.of_contents.filter(|of_contents| side.id == Some(*of_contents)) {
        Some(id) => {
            findings.ok(format_args!("installation id: {id}, in the database and in {place}"))
        }
        None => findings
            .ok("installation id: the next start of the service gives it to whoever has none"),
    }
    Ok(())
}

/// Reports how many bytes are free where contents are written.
fn judge_room(findings: &mut Findings, storage: &Storage) {
    let Ok(space) = storage.disk_space() else { return };
    let is_full = space.free_bytes < space.total_bytes / 100 * MIN_FREE_PERCENT;
    findings.report(
        if is_full { Level::Warning } else { Level::Ok },
        format_args!("disk: {} of {} are free", bytes(space.free_bytes), bytes(space.total_bytes)),
        "Free room or enlarge the file system before uploads fail.",
    );
}

/// Connects to the mail server, if there is one, and signs in, but sends nothing.
fn judge_mail(findings: &mut Findings, config: &Config) {
    let server = match &config.smtp {
        Smtp::Server(server) => server.clone(),
        Smtp::Off => return findings.ok("mail: CLOAKROOM_SMTP_URL is none, so no mail is sent"),
        Smtp::Unset => {
            return findings.ok("mail: no server is known, so the log has what a mail would have");
        }
    };
    let (shown, is_local) = (server.url.clone(), server.is_local());
    match within_max_wait(move || session_encryption(&server)) {
        Some(Ok(None)) if !is_local => findings.warning(
            format_args!("mail: {shown} answers, and offers no encryption"),
            "The links in messages about passwords can be read on their way: use smtps:// with port 465, or a port on \
             which the server offers STARTTLS, usually 587.",
        ),
        Some(Ok(version)) => {
            let version = version.unwrap_or_else(|| "without encryption, on this host".to_owned());
            findings.ok(format_args!("mail: {shown} takes mail ({version})"));
        }
        Some(Err(error)) => findings.fault(format_args!("mail: {shown}: {error}"), advice(&error)),
        None => findings.fault(
            format_args!("mail: {shown}: no answer in time"),
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

/// Asks the service whether it is ready, at the address on which it listens by the settings, unless that has no port.
fn judge_service(findings: &mut Findings, address: SocketAddr) {
    if address.port() == 0 {
        return;
    }
    let answer = within_max_wait(move || ask_service(address));
    let (level, said) = match answer.unwrap_or_else(|| Err(ErrorKind::TimedOut.into())) {
        Ok(body) if body["status"] == "ok" => (Level::Ok, "is ready".to_owned()),
        Ok(body) => (Level::Fault, format!("is not as it should be: {body}")),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            (Level::Warning, "is not in use: nothing listens there".to_owned())
        }
        Err(e) => (Level::Fault, format!("does not answer, or something else listens: {e}")),
    };
    findings.report(
        level,
        format_args!("service: {address} {said}"),
        "Start it, or see its log, and who has the port: `ss --listening --tcp --processes`.",
    );
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
