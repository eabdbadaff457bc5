//! `cloakroom restore DIR/<UTC time>`: restores a backup into an empty database and an empty data directory.
//!
//! The data directory is marked as unusable from the first content to the end, so that whatever interrupts the
//! restoration, the service does not start on a half of it. The contents come first, then the database, in one
//! transaction of `pg_restore`, and the mark is removed last.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use uuid::Uuid;

use super::backup::manifest::{Dump, Header, Manifest};
use super::backup::verify::{self, DamagedParts};
use super::backup::{CONTENTS, DUMP};
use super::postgres_programs;
use super::print_line;
use super::progress::{Progress, Unit};
use super::serve::ignore_file_size_signal;
use crate::config::Config;
use crate::db;
use crate::db::restore::{Counts, EmptyDatabase};
use crate::error::Error;
use crate::storage::{Restoration, copy_hashed, copy_verified};
use crate::telemetry::logging;

/// What `pg_restore` leaves out beside owners and privileges, which are those of the user that restores: what is of no
/// use to the service, and needs rights or tablespaces that this user or this server may not have.
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
/// Bytes of the messages of `pg_restore` that are looked at.
const MAX_MESSAGES: u64 = 64 * 1024;

/// Runs the command. Unless `skip_damaged`, it changes nothing where any content of the backup is damaged; a damaged
/// dump or manifest can never be restored.
pub fn restore(config: &Config, backup: &Path, skip_damaged: bool) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    ignore_file_size_signal()?;
    let (backup, manifest) = verify::open(backup)?;
    let mut empty = EmptyDatabase::lock(config)?;
    Restoration::check(&config.data_dir)?;
    let postgresql = empty.server_version()?;
    check_versions(&manifest.header, &postgresql)?;
    let pg_restore = postgres_programs::command(config, "pg_restore", &postgresql)?;
    let damage = verify::find_damage(&backup, &manifest)?;
    refuse_damage(&damage, skip_damaged)?;
    let restoration = Restoration::begin(&config.data_dir)?;
    let filled = copy_contents(&manifest, &backup, &damage.contents, &restoration)
        .and_then(|()| restore_dump(pg_restore, &manifest.header.dump, &backup));
    if let Err(fault) = filled {
        return Err(give_up(fault, &mut empty, restoration));
    }
    finish(config, &manifest.header, &damage.contents, restoration).map_err(|fault| {
        format!(
            "{fault}\nThe database is restored, but cannot be used yet: make it anew (dropdb, createdb) and restore \
             again"
        )
    })
}

/// Fails where the program or the server is too old for the backup. On failure: what to tell the operator.
fn check_versions(header: &Header, postgresql: &str) -> Result<(), String> {
    let newest = db::newest_schema_version();
    if header.schema_version > newest {
        return Err(format!(
            "the backup has schema version {}, this program knows versions up to {newest}: use cloakroom {} or newer",
            header.schema_version, header.cloakroom
        ));
    }
    let major = postgres_programs::major_version;
    if major(&header.postgresql) > major(postgresql) {
        return Err(format!(
            "the backup is of PostgreSQL {}, the server is PostgreSQL {postgresql}: restore it into the same version \
             or a newer one",
            header.postgresql
        ));
    }
    Ok(())
}

/// Decides whether a backup can be restored of which so much is damaged. On failure: what to tell the operator.
fn refuse_damage(damage: &DamagedParts, skip_damaged: bool) -> Result<(), String> {
    let Some(summary) = damage.summary() else { return Ok(()) };
    if damage.dump {
        return Err(format!(
            "the backup is damaged ({summary}): without its dump it cannot be restored"
        ));
    }
    if skip_damaged {
        return Ok(());
    }
    Err(format!(
        "the backup is damaged ({summary}): nothing was changed. Restore another one, or this one without what is \
         damaged by --skip-damaged"
    ))
}

/// Copies all contents but the damaged ones, whose ids are in ascending order.
fn copy_contents(
    manifest: &Manifest,
    backup: &Path,
    damaged: &[Uuid],
    restoration: &Restoration,
) -> Result<(), String> {
    let mut progress = Progress::new("copying contents", Unit::Bytes, Some(manifest.header.bytes));
    for content in manifest.contents()? {
        let content = content?;
        if damaged.binary_search(&content.id).is_ok() {
            continue;
        }
        let path = backup.join(CONTENTS).join(content.id.to_string());
        let target = restoration.create(content.id)?;
        let advance = |bytes| progress.advance(bytes);
        let copied = copy_verified(&path, target, content.size, &content.sha256, advance);
        // It was whole a moment ago.
        copied
            .map_err(|e| restoration.describe(&e))?
            .map_err(|damage| format!("{} {damage} now", path.display()))?;
    }
    Ok(())
}

/// Restores the database in one transaction, by `pg_restore`, which has the settings of the database. The program reads
/// from a pipe: so the dump is hashed on its way, and if this process is killed, the program fails at its next read and
/// the transaction is rolled back.
fn restore_dump(mut pg_restore: Command, dump: &Dump, backup: &Path) -> Result<(), String> {
    let path = backup.join(DUMP);
    let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    pg_restore.args([DATABASE, "--exit-on-error", "--single-transaction"]).args(LEFT_OUT);
    pg_restore.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |e: io::Error| format!("pg_restore: {e}");
    let mut child = pg_restore.spawn().map_err(failed)?;
    let stdin = child.stdin.take().ok_or("pg_restore has no input")?;
    let stderr = child.stderr.take().ok_or("pg_restore has no messages")?;
    let messages = thread::spawn(|| messages(stderr));
    let mut progress = Progress::new("restoring the database", Unit::Bytes, Some(dump.size));
    // Dropping the pipe at the end of this statement is the end of the input.
    let fed = copy_hashed(file, stdin, |bytes| progress.advance(bytes));
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        let messages = messages.join().unwrap_or_default();
        return Err(format!("pg_restore failed ({status}): {messages}"));
    }
    let fed = fed.map_err(|e| format!("{}: {e}", path.display()))?;
    if fed != (dump.size, dump.sha256.clone()) {
        return Err(format!("{} was changed while it was restored", path.display()));
    }
    Ok(())
}

/// Reads what the program says, to the end, and returns its own messages. Other lines are details of the server's
/// errors, which may hold values of rows.
fn messages(mut stderr: impl Read) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is missing in the message about a failure, and nothing else depends on it.
    let _ = stderr.by_ref().take(MAX_MESSAGES).read_to_end(&mut bytes);
    let _ = io::copy(&mut stderr, &mut io::sink());
    let text = String::from_utf8_lossy(&bytes);
    let own = text.lines().filter_map(|line| line.strip_prefix("pg_restore: "));
    own.collect::<Vec<_>>().join("; ")
}

/// Removes the contents again where nothing came into the database. Returns what to tell the operator.
fn give_up(fault: String, empty: &mut EmptyDatabase, restoration: Restoration) -> String {
    match empty.table() {
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

/// Makes what was restored an installation of its own, compares it with the manifest, and removes the mark. On failure
/// the mark stays, and the error is what to tell the operator.
fn finish(
    config: &Config,
    header: &Header,
    damaged: &[Uuid],
    restoration: Restoration,
) -> Result<(), String> {
    let cause = |e: Error| e.cause().into_owned();
    let db = db::open_and_migrate(config)?;
    let restored = db::restore::counts(&db).map_err(cause)?;
    let installation_id = Uuid::new_v4();
    let ended = db::restore::renew(&db, installation_id, damaged).map_err(cause)?;
    let left = db::restore::counts(&db).map_err(cause)?;
    db::restore::vacuum(&db).map_err(cause)?;
    let on_disk = restoration.sync()?;
    compare(header, restored, left, on_disk)?;
    restoration.finish(installation_id)?;
    print_line(format_args!(
        "Restored as installation {installation_id}. {} sessions and {} personal tokens have ended; passwords are \
         those of the backup, made at {}.",
        ended.sessions, ended.personal_tokens, header.created_at
    ));
    Ok(())
}

/// Prints the numbers of the manifest, of the database as it was restored and without the damaged files that are `left`
/// out, and of the contents, and fails unless they agree. `on_disk`: number of contents, and their bytes.
fn compare(
    header: &Header,
    restored: Counts,
    left: Counts,
    on_disk: (u64, u64),
) -> Result<(), String> {
    let Header { users, files, bytes, .. } = *header;
    print_line(format_args!("manifest: {users} users, {files} files, {bytes} bytes"));
    let skipped = (restored.files - left.files, restored.bytes - left.bytes);
    if skipped.0 > 0 {
        print_line(format_args!(
            "damaged:  {} files, {} bytes, not restored",
            skipped.0, skipped.1
        ));
    }
    print_line(format_args!(
        "database: {} users, {} files, {} bytes",
        left.users, left.files, left.bytes
    ));
    print_line(format_args!("contents: {} files, {} bytes", on_disk.0, on_disk.1));
    if restored != (Counts { users, files, bytes }) || on_disk != (left.files, left.bytes) {
        return Err("the numbers do not agree".into());
    }
    Ok(())
}
