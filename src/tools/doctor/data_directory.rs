//! Whether the data directory can be used, belongs to the database, is private, and has room.

use std::fs;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::serve::{installation, signing_secret};
use crate::storage::{DiskSpace, Storage, directory, refuse_partial};
use crate::tools::database::diagnosis::DatabaseFacts;
use crate::tools::findings::{Findings, Level};
use crate::tools::quantity::bytes;

/// With fewer free bytes uploads are about to fail, unless these are a large part of a small file system.
const MIN_FREE_BYTES: u64 = 100 << 20;
/// The same for free inodes, each of which is a file.
const MIN_FREE_INODES: u64 = 1000;
/// The part of a file system, in percent, below which it is time to make room.
const MIN_FREE_PERCENT: u64 = 10;

/// Advice if files are recorded and their contents are not there.
const LOST_CONTENTS: &str = "The database has records of files: check CLOAKROOM_DATA_DIR and what is mounted there, or \
                             restore the directory from a backup.";

/// Judges everything, as far as there is a directory. To see whether it can be written to, a file is written to each
/// directory and removed.
pub fn judge(findings: &mut Findings, config: &Config, database: &DatabaseFacts) {
    let path = &config.data_dir;
    let has_records = database.installation.as_ref().is_some_and(|side| side.has_files);
    let owner = match fs::metadata(path) {
        Ok(metadata) => metadata.uid(),
        Err(error) => return report_missing(findings, path, &error.to_string(), has_records),
    };
    if path.is_dir()
        && let Err(refusal) = refuse_partial(path)
    {
        return findings.fault(format_args!("data directory: {refusal}"), "");
    }
    let storage = match Storage::at(config) {
        Ok(storage) => storage,
        Err(fault) => return findings.fault(format_args!("store: {fault}"), ""),
    };
    let directories: Vec<&Path> = iter::once(path.as_path()).chain(storage.directories()).collect();
    if !are_usable(findings, &directories, has_records) {
        return;
    }
    judge_owner(findings, path, owner);
    if let Err(fault) = check_secret_file(config) {
        findings.fault(format_args!("data directory: {fault}"), "");
    }
    judge_modes(findings, path, &directories);
    judge_file_systems(findings, &storage);
    judge_room(findings, config, &storage, database);
    if judge_store(findings, &storage) {
        judge_installation(findings, &storage, database);
    }
}

/// Asks the store, if there is one, and returns whether contents can be reached.
pub fn judge_store(findings: &mut Findings, storage: &Storage) -> bool {
    let (place, _) = storage.place();
    match storage.reach() {
        Ok(true) if storage.content_directory().is_some() => {}
        Ok(true) => findings.ok(format_args!("store: {place} answers")),
        Ok(false) => {
            let advice =
                "Check the endpoint in CLOAKROOM_STORAGE_URL, firewalls, and the store itself.";
            findings.fault(format_args!("store: {place} does not answer"), advice);
            return false;
        }
        Err(refusal) => {
            let advice = "Check the bucket, the region and both keys.";
            findings.fault(format_args!("store: {refusal}"), advice);
            return false;
        }
    }
    true
}

fn report_missing(findings: &mut Findings, path: &Path, error: &str, has_records: bool) {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = format!("data directory: {}: {error}", absolute.display());
    if has_records {
        findings.fault(text, LOST_CONTENTS);
    } else {
        findings.warning(text, "The first start of the service makes it.");
    }
}

/// Checks the directory and those within it. Missing ones are made by the next start of the service.
fn are_usable(findings: &mut Findings, directories: &[&Path], has_records: bool) -> bool {
    let mut are_usable = true;
    for path in directories {
        let text = format!("data directory: {}", path.display());
        if path.exists() {
            if let Err(fault) = directory::check(path) {
                are_usable = false;
                let path = path.display();
                let advice = format!(
                    "Free room or mount it for writing, or let the user of the service write there: chown USER {path}; \
                     chmod u=rwx {path}"
                );
                findings.fault(format_args!("{text} {fault}"), &advice);
            }
        } else if has_records {
            findings.fault(format_args!("{text} does not exist"), LOST_CONTENTS);
        }
    }
    are_usable
}

fn judge_owner(findings: &mut Findings, path: &Path, owner: u32) {
    // A relative path depends on the directory in which the program is started.
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (shown, name) = (absolute.display(), directory::user_name(owner));
    if rustix::process::geteuid().as_raw() == owner {
        findings.ok(format_args!(
            "data directory: {shown} belongs to user {name} and can be read and written"
        ));
    } else {
        findings.warning(
            format_args!(
                "data directory: {shown} belongs to user {name}, who is not the one who runs this"
            ),
            // What else is in the directory, such as the private PostgreSQL of `scripts/run`, keeps its owner.
            &format!(
                "Run this as the user of the service. If that is not {name}: chown USER {shown}; chown --recursive \
                 USER {shown}/{{files,tmp,trash,installation-id,jwt-secret}}"
            ),
        );
    }
}

/// Fails if [`signing_secret::load`] would fail because of the file, and does not make it. The error is a message for
/// the operator.
fn check_secret_file(config: &Config) -> Result<(), String> {
    let path = signing_secret::path(config);
    if config.jwt_secret.is_some() || !path.exists() {
        return Ok(());
    }
    signing_secret::long_enough(config, &path, fs::read(&path)).map(drop)
}

/// Warns about what users other than the owner may read or change. The data directory itself may be listed and entered,
/// because what is in it has rights of its own: `scripts/run` keeps a PostgreSQL there that runs as another user.
fn judge_modes(findings: &mut Findings, path: &Path, directories: &[&Path]) {
    let files = ["jwt-secret", "installation-id"].map(|name| path.join(name));
    let all = directories.iter().copied().chain(files.iter().map(PathBuf::as_path));
    let mut open: Vec<(String, &str)> = Vec::new();
    for place in all {
        let (rights, change) = if place == path { (0o022, "go-w") } else { (0o077, "go=") };
        if fs::metadata(place).is_ok_and(|found| found.mode() & rights != 0) {
            open.push((place.display().to_string(), change));
        }
    }
    if open.is_empty() {
        return findings.ok("data directory: only its owner may read the files in it");
    }
    let names: Vec<_> = open.iter().map(|(name, _)| name.as_str()).collect();
    let commands: Vec<_> =
        open.iter().map(|(name, change)| format!("chmod {change} {name}")).collect();
    findings.warning(
        format_args!("data directory: other users have rights to {}", names.join(", ")),
        &commands.join("; "),
    );
}

/// Contents are moved between the directories, which works only within a file system.
fn judge_file_systems(findings: &mut Findings, storage: &Storage) {
    let directories = storage.directories().into_iter();
    let mut devices = directories.filter_map(|path| Some(fs::metadata(path).ok()?.dev()));
    let first = devices.next();
    if devices.any(|device| Some(device) != first) {
        findings.fault(
            "data directory: files, tmp and trash are on different file systems",
            "Contents cannot be moved between them: uploads or the sweep fail. Mount one file system for all of them.",
        );
    }
}

/// Reports how many bytes and inodes are free.
pub fn judge_room(
    findings: &mut Findings,
    config: &Config,
    storage: &Storage,
    database: &DatabaseFacts,
) {
    let Ok(space) = storage.disk_space() else {
        return findings.ok("disk: not looked at, because there is no directory of contents yet");
    };
    judge_inodes(findings, &space, &config.data_dir);
    let DiskSpace { total_bytes, free_bytes, .. } = space;
    // What is in a store takes no room here.
    let stored = database.stored.as_ref().filter(|_| storage.content_directory().is_some());
    let stored = stored.map(|stored| stored.bytes.unsigned_abs());
    let missing = stored.map(|stored| config.storage_quota.saturating_sub(stored));
    let missing = missing.filter(|missing| *missing > free_bytes);
    let (free, total) = (bytes(free_bytes), bytes(total_bytes));
    let text = format!("disk: {free} of {total} are free");
    let shortage = match shortage(free_bytes, total_bytes, MIN_FREE_BYTES) {
        _ if free_bytes < config.max_upload_size => Level::Fault,
        shortage => shortage,
    };
    match (shortage, missing) {
        (Level::Fault, _) => {
            let advice = format!(
                "A file may have {} (CLOAKROOM_MAX_UPLOAD_SIZE), so uploads fail or are about to: free room or enlarge \
                 the file system.",
                bytes(config.max_upload_size)
            );
            findings.fault(text, &advice);
        }
        (Level::Warning, _) => {
            findings.warning(text, "Free room or enlarge the file system before uploads fail.");
        }
        (Level::Ok, None) => findings.ok(text),
        (Level::Ok, Some(missing)) => {
            let advice = format!(
                "CLOAKROOM_STORAGE_QUOTA lets users store {} more: lower it or enlarge the file system, or a full \
                 disk will refuse uploads before the quota does.",
                bytes(missing)
            );
            findings.warning(text, &advice);
        }
    }
}

fn judge_inodes(findings: &mut Findings, space: &DiskSpace, path: &Path) {
    let DiskSpace { total_inodes, free_inodes, .. } = *space;
    if total_inodes == 0 {
        return findings.ok("inodes: the file system has no fixed number of them");
    }
    let text = format!("inodes: {free_inodes} of {total_inodes} are free");
    let path = path.display();
    match shortage(free_inodes, total_inodes, MIN_FREE_INODES) {
        Level::Ok => findings.ok(text),
        Level::Warning => {
            let advice = format!("Remove small files, or move {path} to a file system with more.");
            findings.warning(text, &advice);
        }
        Level::Fault => {
            let advice =
                "Uploads are about to fail, because each needs an inode: remove small files.";
            findings.fault(text, advice);
        }
    }
}

/// How bad it is that so much is free: a warning with less than [`MIN_FREE_PERCENT`] of the total, and a fault if it is
/// also less than `min`.
fn shortage(free: u64, total: u64, min: u64) -> Level {
    match free {
        _ if free >= total.div_ceil(100 / MIN_FREE_PERCENT) => Level::Ok,
        _ if free >= min => Level::Warning,
        _ => Level::Fault,
    }
}

fn judge_installation(findings: &mut Findings, storage: &Storage, database: &DatabaseFacts) {
    let is_there = storage.content_directory().is_none_or(Path::exists);
    let Some(side) = database.installation.as_ref().filter(|_| is_there) else {
        return findings.ok(
            "installation id: not compared, because one side was not asked or has had no start yet",
        );
    };
    match installation::compare(side, storage) {
        Err(refusal) => findings.fault(format_args!("installation id: {refusal}"), ""),
        Ok(agreement) if side.id == agreement.of_contents => findings.ok(format_args!(
            "installation id: {}, in the database and in the {}",
            agreement.id,
            if storage.content_directory().is_some() { "directory" } else { "store" }
        )),
        Ok(_) => findings.ok(
            "installation id: the next start of the service gives it to the side that has none",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_should_be_free_and_a_minimum_must_be() {
        for (free, total, level) in [
            (0, 200, Level::Fault),
            (19, 200, Level::Fault),
            (30, 40, Level::Ok),
            (99, 200, Level::Ok),
            (99, 1000, Level::Fault),
            (100, 1000, Level::Ok),
            (199, 2000, Level::Warning),
            (200, 2000, Level::Ok),
            (1 << 58, 1 << 63, Level::Warning),
            (u64::MAX, u64::MAX, Level::Ok),
        ] {
            assert!(shortage(free, total, 100) == level, "{free} of {total}");
        }
    }
}
