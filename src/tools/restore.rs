//! `cloakroom restore DIR/<UTC time>`: restores a backup into an empty database and an empty data directory or store.
//!
//! The data directory is marked as unusable from the first content to the end, so that whatever interrupts the
//! restoration, the service does not start on a half of it. The contents come first, then the database, in one
//! transaction of `pg_restore`, and the mark is removed last.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use super::backup::manifest::{Backup, CONTENTS, DUMP, Manifest};
use super::database::{DedicatedConnection, Totals, count_second_factors};
use super::files::{copy_hashed, open_regular};
use super::output::{Names, Progress, count, print_line};
use super::postgres_programs::{self, major_version};
use super::restoration::Restoration;
use crate::config::Config;
use crate::db::migrations::{newest_schema_version, too_old};
use crate::db::{self, Database, sql};
use crate::error::Error;
use crate::serve::ignore_file_size_signal;

/// Parts of a dump that `pg_restore` leaves out. Owners and privileges are those of the user that restores; the others
/// are of no use to the service, and need rights or tablespaces that this user or this server may not have.
const LEFT_OUT: [&str; 7] = [
    "--no-owner",
    "--no-privileges",
    "--no-comments",
    "--no-tablespaces",
    "--no-publications",
    "--no-subscriptions",
    "--no-security-labels",
];
/// The database of `pg_restore`: the one of its environment, because this names none; without the argument, the program
/// would only print SQL. A server that cannot be reached any more is noticed within two minutes. How long a statement
/// takes has no limit, because nobody knows how long an index does; the operator can break off at any time.
const DATABASE: &str =
    "--dbname=keepalives_idle=60 keepalives_interval=10 keepalives_count=6 tcp_user_timeout=120000";
/// How long a change to the restored database may take. A large one takes long.
const MAX_CHANGE_TIME: Duration = Duration::from_secs(3600);
/// How much of the messages of `pg_restore` is read, in bytes.
const MAX_MESSAGES: u64 = 64 * 1024;

/// Restores `backup`. If any content of the backup is damaged, it changes nothing unless it `skips` damaged ones. A
/// damaged dump, list or manifest cannot be restored at all.
pub fn restore(config: &Config, backup: &Path, skips: bool, all: bool) -> Result<(), String> {
    ignore_file_size_signal()?;
    let backup = Backup::open(backup)?;
    let mut database = lock_empty_database(config)?;
    Restoration::check(config)?;
    let postgresql: String = database.query_one(sql!("db/database/version"))?.get("version");
    check_versions(&backup.manifest, &postgresql)?;
    let pg_restore = postgres_programs::command(config, "pg_restore", &postgresql)?;
    let damage = backup.find_damage(Names::new(all))?;
    if let Some(summary) = damage.summary() {
        if damage.dump {
            return Err(format!(
                "the backup is damaged ({summary}): without its dump it cannot be restored"
            ));
        }
        if !skips {
            return Err(format!(
                "the backup is damaged ({summary}): nothing was changed. Restore another one, or this one without what \
                 is damaged by --skip-damaged"
            ));
        }
    }
    let mut restoration = Restoration::begin(config)?;
    let filled = copy_contents(&backup, &damage.contents, &mut restoration)
        .and_then(|()| restore_dump(pg_restore, &backup));
    if let Err(fault) = filled {
        return Err(give_up(fault, &mut database, restoration));
    }
    finish(config, &backup.manifest, &damage.contents, restoration).map_err(|fault| {
        format!(
            "{fault}\nThe database is restored, but cannot be used yet: make it anew (dropdb, createdb) and restore \
             again"
        )
    })
}

/// Connects to a database without tables, into which no other process restores meanwhile. Fails if it has tables, or if
/// another process restores into it. On failure, here and below: what to tell the operator.
fn lock_empty_database(settings: &Config) -> Result<DedicatedConnection, String> {
    let mut database = DedicatedConnection::open(settings)?;
    let server = database.server.clone();
    if !database.query_one(sql!("tools/restore/lock"))?.get::<_, bool>("is_locked") {
        return Err(format!("another `cloakroom restore` is writing to the database at {server}"));
    }
    database.execute(sql!("db/schema_history/check_text"))?;
    match find_table(&mut database)? {
        None => Ok(database),
        Some(table) => Err(format!(
            "the database at {server} is not empty: it has the table {table}. Restore into a new one (createdb); one \
             that an interrupted restore has left is removed first (dropdb)"
        )),
    }
}

/// Returns one of the tables that the database has by now.
fn find_table(database: &mut DedicatedConnection) -> Result<Option<String>, String> {
    let rows = database.query(sql!("tools/restore/find_tables"), &[])?;
    Ok(rows.first().map(|row| row.get("name")))
}

/// Fails if the program or the server is too old for the backup. On failure: what to tell the operator.
fn check_versions(backup: &Manifest, postgresql: &str) -> Result<(), String> {
    let Manifest { schema_version, cloakroom, postgresql: dumped, .. } = backup;
    if let Some(reason) = too_old(*schema_version) {
        return Err(format!("the backup has {reason}"));
    }
    let newest = newest_schema_version();
    if *schema_version > newest {
        return Err(format!(
            "the backup has schema version {schema_version}, this program knows versions up to {newest}: use cloakroom \
             {cloakroom} or newer"
        ));
    }
    if major_version(dumped) > major_version(postgresql) {
        return Err(format!(
            "the backup is of PostgreSQL {dumped}, the server is PostgreSQL {postgresql}: restore it into the same \
             version or a newer one"
        ));
    }
    Ok(())
}

/// Copies all contents but the damaged ones, whose ids are in ascending order.
fn copy_contents(
    backup: &Backup,
    damaged: &[Uuid],
    restoration: &mut Restoration,
) -> Result<(), String> {
    let mut progress = Progress::begin("copying contents", Some(backup.manifest.totals.files));
    for content in backup.contents()? {
        let (id, sha256) = content?;
        progress.advance(1);
        if damaged.binary_search(&id).is_err() {
            let path = backup.path.join(CONTENTS).join(id.to_string());
            restoration.add(&path, id, &sha256)?;
        }
    }
    Ok(())
}

/// Restores the database in one transaction, by `pg_restore`, which has the settings of the database. The program reads
/// from a pipe, so that the dump is hashed on its way. If this process is killed, the program reads the end of the dump
/// too early, and the server rolls the transaction back; if it has read all of the dump by then, it continues alone,
/// and the mark in the data directory says that the restoration was interrupted.
fn restore_dump(mut pg_restore: Command, backup: &Backup) -> Result<(), String> {
    let path = backup.path.join(DUMP);
    let file = open_regular(&path).map_err(|damage| format!("{} {damage}", path.display()))?;
    pg_restore.args([DATABASE, "--exit-on-error", "--single-transaction"]).args(LEFT_OUT);
    pg_restore.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |e: io::Error| format!("pg_restore: {e}");
    let mut child = pg_restore.spawn().map_err(failed)?;
    let stdin = child.stdin.take().ok_or("pg_restore has no input")?;
    let stderr = child.stderr.take().ok_or("pg_restore has no messages")?;
    let messages = thread::spawn(|| messages(stderr));
    Progress::begin("restoring the database", None);
    // Dropping the pipe at the end of this statement is the end of the input.
    let fed = copy_hashed(file, stdin);
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        let messages = messages.join().unwrap_or_default();
        return Err(format!("pg_restore failed ({status}): {messages}"));
    }
    let read = fed.map_err(|e| e.between(path.display(), "pg_restore"))?;
    if read.sha256 != backup.manifest.dump.sha256 {
        return Err(format!("{} was changed while it was restored", path.display()));
    }
    Ok(())
}

/// Reads the standard error of the program to its end, and returns the program's own messages. Other lines are details
/// of the server's errors, which may hold values of rows.
fn messages(mut stderr: impl Read) -> String {
    let mut bytes = Vec::new();
    // After an error of reading, the message about a failure is shorter, and nothing else depends on it.
    let _ = stderr.by_ref().take(MAX_MESSAGES).read_to_end(&mut bytes);
    let _ = io::copy(&mut stderr, &mut io::sink());
    let text = String::from_utf8_lossy(&bytes);
    let own = text.lines().filter_map(|line| line.strip_prefix("pg_restore: "));
    own.collect::<Vec<_>>().join("; ")
}

/// Removes the contents again if nothing came into the database. Returns what to tell the operator.
fn give_up(fault: String, database: &mut DedicatedConnection, restoration: Restoration) -> String {
    match find_table(database) {
        Ok(None) => match restoration.abandon() {
            Ok(()) => format!("{fault}\nNothing was restored."),
            Err(e) => format!("{fault}\nWhat was copied cannot be removed: {e}"),
        },
        Ok(Some(_)) => format!(
            "{fault}\nThe database is not empty any more: make it anew (dropdb, createdb) and restore again"
        ),
        Err(other) => format!("{fault}\n{other}"),
    }
}

/// Makes the restored database and contents an installation of its own, compares them with the manifest, and removes
/// the mark. On failure the mark stays, and the error is what to tell the operator.
fn finish(
    config: &Config,
    backup: &Manifest,
    damaged: &[Uuid],
    restoration: Restoration,
) -> Result<(), String> {
    let db = db::open_and_migrate(config, |_| Ok(()))?;
    let restored = totals(&db)?;
    let installation_id = Uuid::new_v4();
    let [sessions, tokens, links] = renew(&db, installation_id, damaged)?;
    let left = totals(&db)?;
    let (factors, unreadable) = count_second_factors(&db, config)?;
    db.run(MAX_CHANGE_TIME, |client| client.batch_execute(sql!("tools/restore/vacuum")))?;
    let copied = restoration.sync()?;
    compare(backup, restored, left, copied)?;
    restoration.finish(installation_id)?;
    print_line(format_args!(
        "Restored as installation {installation_id}. Ended: {}, {}, {}. Passwords are those of the backup, made at {}.",
        count(sessions.unsigned_abs(), "session"),
        count(tokens.unsigned_abs(), "personal token"),
        count(links.unsigned_abs(), "link"),
        backup.created_at
    ));
    if unreadable > 0 {
        print_line(format_args!(
            "No key opens {unreadable} of {factors} second factors, so only recovery codes serve their users: add the \
             key that sealed them to CLOAKROOM_SEAL_KEYS."
        ));
    }
    Ok(())
}

/// Makes a restored database an installation of its own, with this id: removes the records of the files whose contents
/// are damaged, and ends all access that was given before. All of it happens or nothing. Returns how many sessions, how
/// many personal access tokens and how many links to files were ended.
fn renew(db: &Database, installation_id: Uuid, damaged: &[Uuid]) -> Result<[i64; 3], Error> {
    db.run(MAX_CHANGE_TIME, |client| {
        let mut transaction = client.transaction()?;
        let (action, reason) = ("file.delete", "damaged in the backup");
        transaction
            .execute(sql!("tools/restore/remove_files"), &[&damaged, &action, &reason, &false])?;
        let row = transaction.query_one(sql!("tools/restore/renew"), &[&installation_id])?;
        transaction.commit()?;
        Ok(["sessions", "personal_tokens", "links"].map(|name| row.get(name)))
    })
}

/// Counts the records.
fn totals(db: &Database) -> Result<Totals, Error> {
    db.run(MAX_CHANGE_TIME, |client| {
        Ok(Totals::of(&client.query_one(sql!("tools/backup/counts"), &[])?))
    })
}

/// Prints the totals of the manifest, the damaged files, the database and the contents, and fails unless they agree.
/// `restored` are the totals of the database before the records of damaged files were removed, `left` those after;
/// `copied` is the number of contents that were copied, and their bytes.
fn compare(
    backup: &Manifest,
    restored: Totals,
    left: Totals,
    copied: (u64, u64),
) -> Result<(), String> {
    let stored = |files, bytes| format!("{}, {}", count(files, "file"), count(bytes, "byte"));
    let all = |of: Totals| format!("{}, {}", count(of.users, "user"), stored(of.files, of.bytes));
    print_line(format_args!("manifest: {}", all(backup.totals)));
    let skipped = (restored.files - left.files, restored.bytes - left.bytes);
    if skipped.0 > 0 {
        print_line(format_args!("damaged:  {}, not restored", stored(skipped.0, skipped.1)));
    }
    print_line(format_args!("database: {}", all(left)));
    print_line(format_args!("contents: {}", stored(copied.0, copied.1)));
    if restored != backup.totals || copied != (left.files, left.bytes) {
        return Err("the numbers do not agree".into());
    }
    Ok(())
}
