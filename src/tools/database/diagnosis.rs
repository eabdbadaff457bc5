//! The questions that `cloakroom doctor` asks the database, and its judgement of the answers. It changes nothing, and
//! uses a connection of its own: the pool would try again for a while, and not say why a connection fails.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use postgres::Client;
use postgres::error::SqlState;

use super::connect::{ConnectedServer, one_row};
use super::schema::{SchemaVersions, schema_versions};
use super::second_factors;
use super::server::{self, answered};
use crate::config::Config;
use crate::db::installation::DatabaseSide;
use crate::db::postgres_error::describe;
use crate::db::sql;
use crate::tools::findings::{Findings, Level};
use crate::tools::postgres_programs::major_version;

/// How often the clocks are compared. The comparison with the shortest round trip counts.
const CLOCK_SAMPLES: usize = 3;
/// The oldest major version of PostgreSQL with which the schema can be made: it has `gen_random_uuid`.
const MIN_VERSION: u32 = 13;
/// The major versions with which tests are run, as `README.md` says.
const TESTED_VERSIONS: [u32; 2] = [15, 17];
/// From this difference of the clocks on, in seconds, times in logs and answers look wrong.
const MAX_CLOCK_DIFFERENCE: f64 = 1.0;
/// From this difference on, in seconds, what expires early or late is a fault.
const MAX_BEARABLE_CLOCK_DIFFERENCE: f64 = 30.0;

/// Facts of the database that other parts of the diagnosis need. One that could not be asked for is `None`.
#[derive(Default)]
pub struct DatabaseFacts {
    /// `None` also if the schema is older than installation ids.
    pub installation: Option<DatabaseSide>,
    /// `None` also if the schema is not that of this program.
    pub stored: Option<Stored>,
}

/// The bytes of all files, and the state of the outbox.
pub struct Stored {
    pub bytes: i64,
    pub mail_waiting: i64,
    pub mail_failed: i64,
    pub mail_oldest: Duration,
}

/// Asks the database and reports what is right and wrong. An answer that the database refuses is a fault.
pub fn diagnose(
    findings: &mut Findings,
    config: &Config,
    mut connection: ConnectedServer,
) -> DatabaseFacts {
    judge_version(findings, &connection);
    let clock = judge_clock(findings, &mut connection.client);
    answered(findings, clock);
    let schema = schema_versions(&mut connection.client);
    let has_schema = schema.as_ref().is_ok_and(|schema| schema.applied > 0);
    let is_current = schema.as_ref().is_ok_and(|schema| schema.applied == schema.newest);
    let state = server::judge(findings, config, &mut connection, has_schema);
    answered(findings, state);
    match schema {
        Ok(schema) => judge_schema(findings, schema),
        Err(reason) => findings.fault(format_args!("schema: {reason}"), ""),
    }
    let client = &mut connection.client;
    let installation = answered(findings, find_installation(client)).flatten();
    let mut stored = None;
    if is_current {
        stored = answered(findings, find_stored(client));
        let counted = second_factors::count(client, &second_factors::sealing_keys(config));
        let counted = answered(findings, counted.map_err(|e| describe(&e)));
        judge_second_factors(findings, counted);
    }
    DatabaseFacts { installation, stored }
}

/// Judges the numbers of all second factors and of those that no key opens.
fn judge_second_factors(findings: &mut Findings, counted: Option<(usize, usize)>) {
    match counted {
        None | Some((0, _)) => {}
        Some((all, 0)) => findings.ok(format_args!("second factors: the keys open all {all}")),
        Some((all, unreadable)) => findings.fault(
            format_args!(
                "second factors: no key opens {unreadable} of {all}, so only recovery codes serve their users"
            ),
            "Add the key that sealed them to CLOAKROOM_SEAL_KEYS, or the former CLOAKROOM_JWT_SECRET to \
             CLOAKROOM_JWT_OLD_SECRETS. If it is lost, take them away with `cloakroom user reset-second-factor`.",
        ),
    }
}

fn judge_version(findings: &mut Findings, connection: &ConnectedServer) {
    let ConnectedServer { version, server, .. } = connection;
    let text = format!("database: PostgreSQL {version} at {server}");
    match major_version(version) {
        Some(..MIN_VERSION) => {
            findings.fault(text, "This version is too old: upgrade PostgreSQL to 15 or 17.");
        }
        major => {
            let is_tested = major.is_some_and(|major| TESTED_VERSIONS.contains(&major));
            let advice = "Cloakroom is tested with versions 15 and 17 only.";
            findings.judge(is_tested, Level::Warning, text, advice);
        }
    }
}

/// Compares the clock of the database with that of this process several times, each in a single round trip. The most
/// exact comparison, which is exact to half its round trip, counts.
fn judge_clock(findings: &mut Findings, client: &mut Client) -> Result<(), String> {
    let (mut ahead, mut round_trip) = (0.0, f64::INFINITY);
    for _ in 0..CLOCK_SAMPLES {
        let (time, begin) = (SystemTime::now(), Instant::now());
        let theirs: f64 = one_row(client, sql!("database/clock"))?.get("seconds");
        let seconds = begin.elapsed().as_secs_f64();
        // A clock before 1970 is far off in any case.
        let sent_at = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if seconds < round_trip {
            (ahead, round_trip) = (theirs - (sent_at + seconds / 2.0), seconds);
        }
    }
    let difference = f64::abs(ahead);
    let side = if ahead < 0.0 { "behind" } else { "ahead of" };
    let text = format!(
        "database clock: {difference:.3} s {side} this system's; an answer takes {:.1} ms",
        round_trip * 1000.0
    );
    let advice = "Synchronise the clocks of both systems (NTP: chrony or systemd-timesyncd).";
    if difference > MAX_BEARABLE_CLOCK_DIFFERENCE {
        let advice = format!("{advice} Until then sessions and tokens end too early or too late.");
        findings.fault(text, &advice);
    } else {
        let is_well = difference <= MAX_CLOCK_DIFFERENCE.max(round_trip);
        findings.judge(is_well, Level::Warning, text, advice);
    }
    Ok(())
}

fn judge_schema(findings: &mut Findings, schema: SchemaVersions) {
    let SchemaVersions { applied, newest } = schema;
    match applied {
        0 => findings.warning(
            "schema: the database is empty",
            "The first start of the service makes the schema. If there should be data, check CLOAKROOM_DATABASE_URL.",
        ),
        _ if applied < newest => findings.warning(
            format_args!("schema: version {applied}, and this program makes version {newest}"),
            "The next start of the service, or `cloakroom migrate`, applies what is missing. Make a backup before.",
        ),
        _ => findings.ok(format_args!("schema: version {applied}, that of this program")),
    }
}

/// Looks up what the installation ids are compared by; `None` if the schema is older than installation ids.
fn find_installation(client: &mut Client) -> Result<Option<DatabaseSide>, String> {
    match client.query_typed_one(sql!("installation/find"), &[]) {
        Err(e) if e.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(e) => Err(describe(&e)),
        Ok(row) => Ok(Some(DatabaseSide::of(&row))),
    }
}

/// Asks for what the schema of this program stores. Fails if the database has another one.
pub fn find_stored(client: &mut Client) -> Result<Stored, String> {
    let row = one_row(client, sql!("stats/stored"))?;
    let mail_oldest: i64 = row.get("mail_oldest_seconds");
    Ok(Stored {
        bytes: row.get("bytes"),
        mail_waiting: row.get("mail_waiting"),
        mail_failed: row.get("mail_failed"),
        mail_oldest: Duration::from_secs(mail_oldest.try_into().unwrap_or_default()),
    })
}
