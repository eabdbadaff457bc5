//! Whether the data directory can be used, belongs to the database, is private, and has room.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::commands::findings::Findings;
use crate::commands::installation::{self, Agreement};
use crate::commands::progress::bytes;
use crate::commands::signing_secret;
use crate::config::Config;
use crate::db::diagnosis::DatabaseFacts;
use crate::storage::{self, DiskSpace, Storage};

/// With fewer free bytes uploads are about to fail.
const MIN_FREE_BYTES: u64 = 100 << 20;
/// With fewer free inodes, each of which is a file, uploads are about to fail.
const MIN_FREE_INODES: u64 = 1000;
/// The part of a file system, in percent, below which it is time to make room.
const MIN_FREE_PERCENT: u64 = 10;

/// What to do where files are recorded and their contents are not there.
const LOST_CONTENTS: &str = "The database has records of files: check CLOAKROOM_DATA_DIR and what is mounted there, or \
                             restore the directory from a backup.";

/// Looks at everything, as far as there is a directory. To see whether it can be written to, a file is written to each
/// directory and removed.
pub fn look(findings: &mut Findings, config: &Config, database: Option<&DatabaseFacts>) {
    let path = &config.data_dir;
    let side = database.and_then(|facts| facts.installation.as_ref().ok()?.as_ref());
    let has_records = side.is_some_and(|side| side.has_files);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return report_missing(findings, path, &error.to_string(), has_records),
    };
    if metadata.is_dir()
        && let Err(refusal) = storage::refuse_partial(path)
    {
        return findings.fault(&format!("data directory: {refusal}"), "");
    }
    let storage = Storage::at(path);
    if !is_usable(findings, path, &storage, has_records) {
        return;
    }
    // A relative path depends on the directory in which the program is started.
    let absolute = path.canonicalize().unwrap_or_else(|_| path.clone());
    let shown = absolute.display();
    let owner = storage::user_name(metadata.uid());
    if rustix::process::geteuid().as_raw() == metadata.uid() {
        findings.ok(&format!(
            "data directory: {shown} belongs to user {owner} and can be read and written"
        ));
    } else {
        findings.warning(
            &format!("data directory: {shown} belongs to user {owner}, who is not the one who runs this"),
            &format!("Run this as the user of the service, and if that is not {owner}: chown --recursive."),
        );
    }
    if let Err(fault) = signing_secret::check_file(config) {
        findings.fault(&format!("data directory: {fault}"), "");
    }
    judge_modes(findings, path, &storage);
    judge_file_systems(findings, &storage);
    judge_room(findings, config, &storage, path, database);
    judge_installation(findings, config, &storage, database);
}

fn report_missing(findings: &mut Findings, path: &Path, error: &str, has_records: bool) {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = format!("data directory: {}: {error}", absolute.display());
    if has_records {
        findings.fault(&text, LOST_CONTENTS);
    } else {
        findings.warning(&text, "The first start of the service makes it.");
    }
}

/// Checks the directory and those within it. Missing ones are made by the next start of the service.
fn is_usable(findings: &mut Findings, path: &Path, storage: &Storage, has_records: bool) -> bool {
    let mut is_usable = true;
    for directory in std::iter::once(path).chain(storage.directories()) {
        let text = format!("data directory: {}", directory.display());
        if !directory.exists() {
            if has_records {
                findings.fault(&format!("{text} does not exist"), LOST_CONTENTS);
            }
            continue;
        }
        if let Err(fault) = storage::check_directory(directory) {
            is_usable = false;
            let advice = "Free room or mount it for writing, or make it belong to the user of the service: chown \
                          --recursive, chmod 700.";
            findings.fault(&format!("{text} {fault}"), advice);
        }
    }
    is_usable
}

/// Warns about what users other than the owner may read or change.
fn judge_modes(findings: &mut Findings, path: &Path, storage: &Storage) {
    let names = ["jwt-secret", "installation-id"].map(|name| path.join(name));
    let all = std::iter::once(path)
        .chain(storage.directories())
        .chain(names.iter().map(PathBuf::as_path));
    let is_open = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0);
    let open: Vec<_> = all.filter(is_open).map(|path| path.display().to_string()).collect();
    if open.is_empty() {
        findings.ok("data directory: only its owner may read it");
    } else {
        findings.warning(
            &format!("data directory: other users have rights to {}", open.join(", ")),
            &format!("chmod --recursive go= {}", path.display()),
        );
    }
}

/// Contents are moved between the directories, which works only within a file system.
fn judge_file_systems(findings: &mut Findings, storage: &Storage) {
    let found = storage.directories().map(|path| fs::metadata(path).ok().map(|found| found.dev()));
    let mut devices = found.into_iter().flatten();
    let first = devices.next();
    if devices.any(|device| Some(device) != first) {
        findings.fault(
            "data directory: files, tmp and trash are on different file systems",
            "Contents cannot be moved between them: uploads or the sweep fail. Mount one file system for all of them.",
        );
    }
}

fn judge_room(
    findings: &mut Findings,
    config: &Config,
    storage: &Storage,
    path: &Path,
    database: Option<&DatabaseFacts>,
) {
    let space = match storage.disk_space() {
        Ok(space) => space,
        Err(_) => {
            return findings
                .ok("disk: not looked at, because there is no directory of contents yet");
        }
    };
    judge_inodes(findings, &space, path);
    let DiskSpace { total_bytes, free_bytes, .. } = space;
    let (free, total) = (bytes(free_bytes), bytes(total_bytes));
    let text = format!("disk: {free} of {total} are free");
    let stored = database.and_then(|facts| facts.stored.as_ref().ok()?.as_ref());
    let missing = stored.map(|stored| {
        config.storage_quota.saturating_sub(stored.bytes.try_into().unwrap_or_default())
    });
    let shortage = Shortage::of(free_bytes, total_bytes, MIN_FREE_BYTES);
    if shortage == Shortage::Acute {
        findings.fault(&text, "Uploads are about to fail: free room or enlarge the file system.");
    } else if shortage == Shortage::Near {
        findings.warning(&text, "Free room or enlarge the file system before uploads fail.");
    } else if let Some(missing) = missing.filter(|missing| *missing > free_bytes) {
        let advice = format!(
            "CLOAKROOM_STORAGE_QUOTA lets users store {} more: lower it or enlarge the file system, or a full disk \
             will refuse uploads before the quota does.",
            bytes(missing)
        );
        findings.warning(&text, &advice);
    } else {
        findings.ok(&text);
    }
}

fn judge_inodes(findings: &mut Findings, space: &DiskSpace, path: &Path) {
    let DiskSpace { total_inodes, free_inodes, .. } = *space;
    let text = format!("inodes: {free_inodes} of {total_inodes} are free");
    if total_inodes == 0 {
        return findings.ok("inodes: the file system has no fixed number of them");
    }
    match Shortage::of(free_inodes, total_inodes, MIN_FREE_INODES) {
        Shortage::None => findings.ok(&text),
        Shortage::Near => {
            let advice = format!(
                "Remove small files, or move {} to a file system with more.",
                path.display()
            );
            findings.warning(&text, &advice);
        }
        Shortage::Acute => findings.fault(
            &text,
            "Uploads are about to fail, because each needs an inode: remove small files.",
        ),
    }
}

/// Whether a file system runs out of something.
#[derive(Debug, PartialEq, Eq)]
enum Shortage {
    None,
    Near,
    Acute,
}

impl Shortage {
    /// Acute with less than `min` free, near with less than [`MIN_FREE_PERCENT`] of the total.
    fn of(free: u64, total: u64, min: u64) -> Shortage {
        match free {
            _ if free < min => Shortage::Acute,
            _ if free < total / 100 * MIN_FREE_PERCENT => Shortage::Near,
            _ => Shortage::None,
        }
    }
}

fn judge_installation(
    findings: &mut Findings,
    config: &Config,
    storage: &Storage,
    database: Option<&DatabaseFacts>,
) {
    let side = database.and_then(|facts| facts.installation.as_ref().ok()?.as_ref());
    let [contents, ..] = storage.directories();
    let Some(side) = side.filter(|_| contents.exists()) else {
        let text =
            "installation id: not compared, because one side was not asked or has had no start yet";
        return findings.ok(text);
    };
    match installation::compare(config, side, storage) {
        Err(refusal) => findings.fault(&format!("installation id: {refusal}"), ""),
        Ok(Agreement { id, in_directory, .. }) if side.id == in_directory => {
            findings.ok(&format!("installation id: {id}, in the database and in the directory"));
        }
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
        for (free, total, shortage) in [
            (0, 0, Shortage::Acute),
            (99, 200, Shortage::Acute),
            (100, 1000, Shortage::None),
            (199, 2000, Shortage::Near),
            (200, 2000, Shortage::None),
            (u64::MAX / 20, u64::MAX, Shortage::Near),
            (u64::MAX, u64::MAX, Shortage::None),
        ] {
            assert_eq!(Shortage::of(free, total, 100), shortage, "{free} of {total}");
        }
    }
}
