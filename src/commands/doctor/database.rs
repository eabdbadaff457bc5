//! What the database says about itself, and what of it is wrong.

use std::sync::Arc;

use super::within_max_wait;
use crate::commands::findings::Findings;
use crate::config::Config;
use crate::db;
use crate::db::diagnosis::{ClockDifference, DatabaseFacts, NoConnection, ServerState, Standby};

/// The oldest major version of PostgreSQL with which the schema can be made: it has `gen_random_uuid`.
const MIN_VERSION: u32 = 13;
/// The oldest major version with which the tests are run.
const TESTED_VERSION: u32 = 15;
/// From this difference of the clocks on, in seconds, times in logs and answers look wrong.
const MAX_CLOCK_DIFFERENCE: f64 = 1.0;
/// From this difference on, in seconds, what expires early or late is a fault.
const MAX_BEARABLE_CLOCK_DIFFERENCE: f64 = 30.0;
/// A standby that is further behind, in bytes, has trouble keeping up. It is one segment of the write-ahead log.
const MAX_BYTES_BEHIND: i64 = 16 << 20;

/// Connects, asks and judges. Returns what the database says; `None` if nothing could be asked.
pub fn look(findings: &mut Findings, config: &Arc<Config>) -> Option<DatabaseFacts> {
    if db::check_settings(config).is_err() {
        findings.warning("database: not looked at, because its settings are wrong", "");
        return None;
    }
    let settings = config.clone();
    let facts = match within_max_wait(move || db::diagnosis::diagnose(&settings)) {
        Some(Ok(facts)) => facts,
        Some(Err(NoConnection { reason, advice })) => {
            findings.fault(&format!("database: {reason}"), advice);
            return None;
        }
        None => {
            let advice = "Check the hosts in CLOAKROOM_DATABASE_URL, firewalls, and the look-up of names (DNS).";
            findings.fault("database: no answer in time", advice);
            return None;
        }
    };
    judge_version(findings, &facts);
    judge_result(findings, &facts.clock, judge_clock);
    judge_result(findings, &facts.state, |findings, state| {
        judge_state(findings, config, &facts, state)
    });
    match &facts.schema {
        Ok(schema) => judge_schema(findings, schema.applied, schema.newest),
        Err(reason) => findings.fault(&format!("schema: {reason}"), ""),
    }
    judge_result(findings, &facts.installation, |_, _| {});
    judge_result(findings, &facts.stored, |_, _| {});
    Some(facts)
}

/// Judges what the database has said. What it refused to say is a fault.
fn judge_result<T>(
    findings: &mut Findings,
    said: &Result<T, String>,
    judge: impl FnOnce(&mut Findings, &T),
) {
    match said {
        Ok(said) => judge(findings, said),
        Err(reason) => {
            let advice = "If it names a permission, the user in CLOAKROOM_DATABASE_URL must own the database.";
            findings.fault(&format!("database: {reason}"), advice);
        }
    }
}

fn judge_version(findings: &mut Findings, facts: &DatabaseFacts) {
    let text = format!("database: PostgreSQL {} at {}", facts.version, facts.server);
    let major = facts.version.split(|c: char| !c.is_ascii_digit()).next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(..MIN_VERSION) => {
            let advice =
                format!("This version is too old: upgrade PostgreSQL to {TESTED_VERSION}.");
            findings.fault(&text, &advice);
        }
        Some(TESTED_VERSION) => findings.ok(&text),
        _ => {
            let advice = format!("Cloakroom is tested with version {TESTED_VERSION} only.");
            findings.warning(&text, &advice);
        }
    }
}

fn judge_clock(findings: &mut Findings, clock: &ClockDifference) {
    let ClockDifference { seconds_ahead, round_trip } = clock;
    let difference = seconds_ahead.abs();
    let side = if *seconds_ahead < 0.0 { "behind" } else { "ahead of" };
    let text = format!(
        "database clock: {difference:.3} s {side} this system's; an answer takes {:.1} ms",
        round_trip.as_secs_f64() * 1000.0
    );
    let advice = "Synchronise the clocks of both systems (NTP: chrony or systemd-timesyncd).";
    if difference > MAX_BEARABLE_CLOCK_DIFFERENCE {
        let advice = format!("{advice} Until then sessions and tokens end too early or too late.");
        findings.fault(&text, &advice);
    } else if difference > MAX_CLOCK_DIFFERENCE.max(round_trip.as_secs_f64()) {
        findings.warning(&text, advice);
    } else {
        findings.ok(&text);
    }
}

fn judge_state(
    findings: &mut Findings,
    config: &Config,
    facts: &DatabaseFacts,
    state: &ServerState,
) {
    judge_role(findings, state);
    judge_encryption(findings, config, facts, state);
    judge_encoding(findings, state);
    judge_connections(findings, config, state);
    judge_durability(findings, state);
    if !state.is_standby {
        judge_result(findings, &facts.standbys, |findings, standbys| {
            judge_replication(findings, state, standbys);
        });
    }
    judge_extensions(findings, facts, state);
}

/// Whether the server takes writes.
fn judge_role(findings: &mut Findings, state: &ServerState) {
    let address = state.address.as_deref().unwrap_or("the socket");
    if state.is_standby {
        findings.fault(
            &format!("database: the server at {address} is a standby, which takes no writes"),
            "Name all servers in CLOAKROOM_DATABASE_URL and add target_session_attrs=read-write, which finds the \
             primary; or promote this one if the primary is lost.",
        );
    } else if state.is_read_only {
        findings.fault(
            "database: transactions are read-only",
            "Set default_transaction_read_only to off, for the server, the database and the role.",
        );
    } else {
        findings.ok(&format!("database: the server at {address} takes writes"));
    }
}

fn judge_encryption(
    findings: &mut Findings,
    config: &Config,
    facts: &DatabaseFacts,
    state: &ServerState,
) {
    let is_verified = config.database_ca.is_some();
    match &state.tls_version {
        Some(version) if is_verified => {
            findings.ok(&format!("database connection: {version}, with a verified certificate"));
        }
        Some(version) => findings.ok(&format!(
            "database connection: {version}, but CLOAKROOM_DATABASE_CA is not set, so any certificate is taken"
        )),
        None if facts.is_local => {
            findings.ok("database connection: not encrypted, and does not leave this system");
        }
        None => findings.warning(
            "database connection: not encrypted, and leaves this system",
            "Add sslmode=require to CLOAKROOM_DATABASE_URL, or set CLOAKROOM_DATABASE_CA, which also verifies the \
             server's certificate.",
        ),
    }
}

fn judge_encoding(findings: &mut Findings, state: &ServerState) {
    let text = format!("database encoding: {}", state.encoding);
    if state.encoding == "UTF8" {
        findings.ok(&text);
    } else {
        let advice = "Names with other characters cannot be stored. Dump the database and restore it into one that was \
                      created with ENCODING 'UTF8' TEMPLATE template0.";
        findings.fault(&text, advice);
    }
}

fn judge_connections(findings: &mut Findings, config: &Config, state: &ServerState) {
    let (available, pool) = (state.available_connections, config.database_pool_size);
    let text = format!(
        "database connections: {available} allowed, {} open; a process of the service opens up to {pool}",
        state.open_connections
    );
    if i64::from(available) < i64::from(pool) {
        let advice = "Lower CLOAKROOM_DATABASE_POOL_SIZE, or raise max_connections of the server or the CONNECTION \
                      LIMIT of the role or the database.";
        findings.warning(&text, advice);
    } else {
        findings.ok(&text);
    }
}

fn judge_durability(findings: &mut Findings, state: &ServerState) {
    let ServerState { settings_off, has_checksums, .. } = state;
    let checksums =
        if *has_checksums { "on" } else { "off (`pg_checksums --enable` finds rot early)" };
    if settings_off.is_empty() {
        let text = "database durability: fsync, full_page_writes and synchronous_commit are on";
        findings.ok(&format!("{text}; data checksums are {checksums}"));
    } else {
        let text = format!("database durability: {} off", settings_off.join(", "));
        let advice = "A crash or a loss of power can lose what clients were told is stored, or damage the database: \
                      set them to on.";
        findings.warning(&text, advice);
    }
}

fn judge_replication(findings: &mut Findings, state: &ServerState, standbys: &[Standby]) {
    let ServerState { awaited_standbys, unused_slots, .. } = state;
    if standbys.is_empty() && awaited_standbys.is_empty() {
        findings.ok("replication: no standby");
    }
    standbys.iter().for_each(|standby| judge_standby(findings, standby));
    let is_sync = |standby: &Standby| {
        // Whoever may not see it gives it the benefit of the doubt.
        standby.sync_state.as_deref().is_none_or(|state| ["sync", "quorum"].contains(&state))
    };
    let connected = standbys.iter().filter(|standby| is_sync(standby)).count();
    if !awaited_standbys.is_empty() && connected < awaited_number(awaited_standbys) {
        findings.fault(
            &format!("replication: commits wait for {awaited_standbys}, and {connected} of these are connected"),
            "Every write hangs until enough of them connect: start them, or change synchronous_standby_names and \
             reload the server.",
        );
    }
    if *unused_slots > 0 {
        findings.warning(
            &format!("replication: {unused_slots} slots without a standby"),
            "The server keeps its log for them until the disk is full: start the standby, or \
             pg_drop_replication_slot(name) for those that pg_replication_slots shows as not active.",
        );
    }
}

/// How many standbys a commit waits for by `synchronous_standby_names`: 2 in `ANY 2 (a, b, c)`, `FIRST 2 (a, b)` and
/// `2 (a, b)`, and 1 in a plain list.
fn awaited_number(names: &str) -> usize {
    let Some((before, _)) = names.split_once('(') else { return 1 };
    before.split_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn judge_standby(findings: &mut Findings, standby: &Standby) {
    let name = &standby.name;
    let Some(state) = &standby.state else {
        let text = format!(
            "replication: standby {name} is connected; its state may not be seen by this user"
        );
        return findings
            .warning(&text, "GRANT pg_monitor TO the user in CLOAKROOM_DATABASE_URL shows it.");
    };
    let sync_state = standby.sync_state.as_deref().unwrap_or("async");
    // What only receives the log, as pg_receivewal does, applies nothing.
    let behind =
        standby.bytes_behind.map(|bytes| format!(", {bytes} bytes behind")).unwrap_or_default();
    let text = format!("replication: standby {name}: {state}, {sync_state}{behind}");
    if state != "streaming" || standby.bytes_behind > Some(MAX_BYTES_BEHIND) {
        findings.warning(&text, "Look at its log, its disk and the network if this does not pass.");
    } else {
        findings.ok(&text);
    }
}

fn judge_extensions(findings: &mut Findings, facts: &DatabaseFacts, state: &ServerState) {
    let has_schema = facts.schema.as_ref().is_ok_and(|schema| schema.applied > 0);
    let fault = match &state.trigram_version {
        Some(version) if state.has_search_index => {
            findings.ok(&format!("extension pg_trgm: {version}, with the index users_search"));
            None
        }
        Some(_) => Some("the index users_search is missing"),
        None => Some("not installed"),
    };
    // The first start makes both.
    if let Some(fault) = fault.filter(|_| has_schema) {
        findings.warning(
            &format!("extension pg_trgm: {fault}"),
            "Searches for users read all of them. As the owner of the database: CREATE EXTENSION pg_trgm; then CREATE \
             INDEX users_search ON users USING gin (lower(email) gin_trgm_ops, lower(name) gin_trgm_ops, \
             lower(username) gin_trgm_ops) WHERE NOT is_deleted AND NOT is_development_admin;",
        );
    }
    match &state.amcheck_version {
        Some(version) => findings.ok(&format!("extension amcheck: {version}")),
        None => findings
            .ok("extension amcheck: not installed, so `cloakroom check` verifies no indexes"),
    }
}

fn judge_schema(findings: &mut Findings, applied: i32, newest: i32) {
    match applied {
        0 => findings.warning(
            "schema: the database is empty",
            "The first start of the service makes the schema. If there should be data, check CLOAKROOM_DATABASE_URL.",
        ),
        _ if applied < newest => findings.warning(
            &format!("schema: version {applied}, and this program makes version {newest}"),
            "The next start of the service, or `cloakroom migrate`, applies what is missing. Make a backup before.",
        ),
        _ => findings.ok(&format!("schema: version {applied}, that of this program")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_for_as_many_standbys_as_the_setting_says() {
        for (names, number) in [
            ("a", 1),
            ("*", 1),
            ("a, b", 1),
            ("ANY 2 (a, b, c)", 2),
            ("first 3(a, b, c)", 3),
            ("2 (a, b)", 2),
        ] {
            assert_eq!(awaited_number(names), number, "{names}");
        }
    }
}
