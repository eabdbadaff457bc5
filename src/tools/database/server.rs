//! The state of the database server, of the database and of the connection, as `cloakroom doctor` judges it. The
//! columns are described in `sql/database/facts.sql` and `sql/database/standbys.sql`.

use postgres::Row;

use super::connect::{ConnectedServer, one_row};
use crate::config::Config;
use crate::db::postgres_error::describe;
use crate::db::sql;
use crate::tools::findings::{Findings, Level};

/// A standby that is further behind, in bytes, has trouble keeping up. It is one segment of the write-ahead log.
const MAX_BYTES_BEHIND: i64 = 16 << 20;

/// Asks the server and judges its answers. Fails if it does not answer. `has_schema` says whether any migration is
/// applied.
pub fn judge(
    findings: &mut Findings,
    config: &Config,
    connection: &mut ConnectedServer,
    has_schema: bool,
) -> Result<(), String> {
    let row = one_row(&mut connection.client, sql!("database/facts"))?;
    judge_role(findings, &row);
    judge_encryption(findings, config, connection.is_local, &row);
    let encoding: &str = row.get("encoding");
    findings.judge(
        encoding == "UTF8",
        Level::Fault,
        format_args!("database encoding: {encoding}"),
        "Names with other characters cannot be stored. Dump the database and restore it into one that was created with \
         ENCODING 'UTF8' TEMPLATE template0.",
    );
    judge_connections(findings, config, &row);
    judge_durability(findings, &row);
    if !row.get::<_, bool>("is_standby") {
        let standbys = connection.client.query_typed(sql!("database/standbys"), &[]);
        if let Some(standbys) = answered(findings, standbys.map_err(|e| describe(&e))) {
            judge_replication(findings, &row, &standbys);
        }
    }
    judge_extensions(findings, &row, has_schema);
    Ok(())
}

/// Returns the answer of the database. A refusal is a fault.
pub fn answered<T>(findings: &mut Findings, answer: Result<T, String>) -> Option<T> {
    let advice =
        "If it names a permission, the user in CLOAKROOM_DATABASE_URL must own the database.";
    let report = |reason: &String| findings.fault(format_args!("database: {reason}"), advice);
    answer.inspect_err(report).ok()
}

/// Judges whether the server takes writes.
fn judge_role(findings: &mut Findings, row: &Row) {
    let address: Option<&str> = row.get("address");
    let address = address.unwrap_or("the socket");
    if row.get("is_standby") {
        findings.fault(
            format_args!("database: the server at {address} is a standby, which takes no writes"),
            "Name all servers in CLOAKROOM_DATABASE_URL and add target_session_attrs=read-write, which finds the \
             primary; or promote this one if the primary is lost.",
        );
    } else if row.get("is_read_only") {
        findings.fault(
            "database: transactions are read-only",
            "Set default_transaction_read_only to off, for the server, the database and the role.",
        );
    } else {
        findings.ok(format_args!("database: the server at {address} takes writes"));
    }
}

fn judge_encryption(findings: &mut Findings, config: &Config, is_local: bool, row: &Row) {
    match row.get::<_, Option<&str>>("tls_version") {
        Some(version) if config.database_ca.is_some() => findings
            .ok(format_args!("database connection: {version}, with a verified certificate")),
        Some(version) => findings.ok(format_args!(
            "database connection: {version}, but CLOAKROOM_DATABASE_CA is not set, so any certificate is taken"
        )),
        None if is_local => {
            findings.ok("database connection: not encrypted, and does not leave this system");
        }
        None => findings.warning(
            "database connection: not encrypted, and leaves this system",
            "Add sslmode=require to CLOAKROOM_DATABASE_URL, or set CLOAKROOM_DATABASE_CA, which also verifies the \
             server's certificate.",
        ),
    }
}

fn judge_connections(findings: &mut Findings, config: &Config, row: &Row) {
    let (available, open): (i32, i64) =
        (row.get("available_connections"), row.get("open_connections"));
    let pool = config.database_pool_size;
    findings.judge(
        i64::from(available) >= i64::from(pool),
        Level::Warning,
        format_args!(
            "database connections: {available} allowed, {open} open; a process of the service opens up to {pool}"
        ),
        "Lower CLOAKROOM_DATABASE_POOL_SIZE, or raise max_connections of the server or the CONNECTION LIMIT of the \
         role or the database.",
    );
}

fn judge_durability(findings: &mut Findings, row: &Row) {
    let settings_off: Vec<&str> = row.get("settings_off");
    let has_checksums: bool = row.get("has_checksums");
    let checksums =
        if has_checksums { "on" } else { "off (`pg_checksums --enable` finds rot early)" };
    if settings_off.is_empty() {
        findings.ok(format_args!(
            "database durability: fsync, full_page_writes and synchronous_commit are on; data checksums are \
             {checksums}"
        ));
    } else {
        findings.warning(
            format_args!("database durability: {} off", settings_off.join(", ")),
            "A crash or a loss of power can lose what clients were told is stored, or damage the database: set them to \
             on.",
        );
    }
}

fn judge_replication(findings: &mut Findings, row: &Row, standbys: &[Row]) {
    let (awaited, unused_slots): (&str, i64) =
        (row.get("awaited_standbys"), row.get("unused_slots"));
    if standbys.is_empty() && awaited.is_empty() {
        findings.ok("replication: no standby");
    }
    standbys.iter().for_each(|standby| judge_standby(findings, standby));
    let is_sync = |standby: &&Row| {
        // A user who may not see it gives it the benefit of the doubt.
        let state: Option<&str> = standby.get("sync_state");
        state.is_none_or(|state| ["sync", "quorum"].contains(&state))
    };
    let connected = standbys.iter().filter(is_sync).count();
    if !awaited.is_empty() && connected < awaited_number(awaited) {
        findings.fault(
            format_args!("replication: commits wait for {awaited}, and {connected} of these are connected"),
            "Every write hangs until enough of them connect: start them, or change synchronous_standby_names and \
             reload the server.",
        );
    }
    if unused_slots > 0 {
        findings.warning(
            format_args!("replication: {unused_slots} slots without a standby"),
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

fn judge_standby(findings: &mut Findings, standby: &Row) {
    let (name, state): (&str, Option<&str>) = (standby.get("name"), standby.get("state"));
    let Some(state) = state else {
        return findings.warning(
            format_args!(
                "replication: standby {name} is connected; its state may not be seen by this user"
            ),
            "GRANT pg_monitor TO the user in CLOAKROOM_DATABASE_URL shows it.",
        );
    };
    let (sync_state, behind): (Option<&str>, Option<i64>) =
        (standby.get("sync_state"), standby.get("bytes_behind"));
    // A standby that only receives the log, as pg_receivewal does, applies nothing.
    let shown = behind.map(|bytes| format!(", {bytes} bytes behind")).unwrap_or_default();
    findings.judge(
        state == "streaming" && behind <= Some(MAX_BYTES_BEHIND),
        Level::Warning,
        format_args!(
            "replication: standby {name}: {state}, {}{shown}",
            sync_state.unwrap_or("async")
        ),
        "Look at its log, its disk and the network if this does not pass.",
    );
}

fn judge_extensions(findings: &mut Findings, row: &Row, has_schema: bool) {
    let fault = match row.get::<_, Option<&str>>("trigram_version") {
        Some(version) if row.get("has_search_index") => {
            findings.ok(format_args!(
                "extension pg_trgm: {version}, with the index listed_users_search"
            ));
            None
        }
        Some(_) => Some("the index listed_users_search is missing"),
        None => Some("not installed"),
    };
    // The first start makes both.
    if let Some(fault) = fault.filter(|_| has_schema) {
        findings.warning(
            format_args!("extension pg_trgm: {fault}"),
            "Searches for users read all of them. As the owner of the database: CREATE EXTENSION pg_trgm; then CREATE \
             INDEX listed_users_search ON listed_users USING gin (email gin_trgm_ops, name gin_trgm_ops, \
             username gin_trgm_ops);",
        );
    }
    let amcheck: Option<&str> = row.get("amcheck_version");
    let none = "not installed, so `cloakroom check` verifies no indexes";
    findings.ok(format_args!("extension amcheck: {}", amcheck.unwrap_or(none)));
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
