//! `cloakroom backup --verify DIR/<UTC time>`: reads everything that a backup consists of, and compares it with the
//! manifest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::manifest::{FILE_NAME, Manifest};
use super::{CONTENTS, DUMP, PARTIAL};
use crate::tools::database::Totals;
use crate::tools::examination::examine;
use crate::tools::print_line;
use crate::tools::progress::Progress;
use crate::tools::quantity::{self, count};

/// The parts of a backup that are damaged. The manifest is not among them: if it is damaged, nothing is known about the
/// rest.
#[derive(Default)]
pub struct DamagedParts {
    /// Whether the dump is damaged or missing.
    pub dump: bool,
    /// The contents that are damaged or missing, in the order of their ids.
    pub contents: Vec<Uuid>,
    /// Number of files beside the contents that the manifest does not name.
    pub unknown: u64,
}

/// Runs the command. It uses no database and no settings, so that backups can be verified on any machine. Fails if
/// anything is damaged, after it has printed a line for each.
pub fn verify(directory: &Path) -> Result<(), String> {
    let (directory, manifest) = open(directory)?;
    let damage = find_damage(&directory, &manifest)?;
    if let Some(summary) = damage.summary() {
        return Err(format!("{} is damaged: {summary}", directory.display()));
    }
    let Totals { users, files, bytes } = manifest.header.totals;
    print_line(format_args!(
        "{} is whole: {}, {} ({}), and a dump of {}.",
        directory.display(),
        count(users, "user"),
        count(files, "file"),
        quantity::bytes(bytes),
        quantity::bytes(manifest.header.dump.size)
    ));
    Ok(())
}

/// Opens a backup, and returns its absolute path. Fails if it is not whole, or its manifest is damaged. On failure:
/// what to tell the operator.
pub fn open(directory: &Path) -> Result<(PathBuf, Manifest), String> {
    let directory =
        fs::canonicalize(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(PARTIAL) {
        return Err(format!(
            "{} is not whole: it is what an interrupted backup left",
            directory.display()
        ));
    }
    if fs::symlink_metadata(directory.join(FILE_NAME)).is_err() {
        return Err(format!(
            "{} is no backup, because it has no {FILE_NAME}: name the directory of one backup, such as \
             2026-01-02T03-04-05Z",
            directory.display()
        ));
    }
    let manifest = Manifest::open(&directory)?;
    Ok((directory, manifest))
}

/// Reads the dump and every content, and prints a line for each that is missing, damaged, or not in the manifest. Fails
/// only if that cannot be found out.
pub fn find_damage(directory: &Path, manifest: &Manifest) -> Result<DamagedParts, String> {
    let (header, contents) = (&manifest.header, directory.join(CONTENTS));
    // A symbolic link would show what is elsewhere.
    if !fs::symlink_metadata(&contents).is_ok_and(|found| found.is_dir()) {
        return Err(format!("{} is missing or not a directory", contents.display()));
    }
    let total = header.totals.bytes.saturating_add(header.dump.size);
    let mut progress = Progress::of_bytes("verifying the backup", Some(total));
    let mut damage = DamagedParts::default();
    // The ids of a million contents take 16 MB.
    let mut ids = Vec::new();
    let mut is_damaged = |name: &str, size, sha256: &str| {
        let advance = |bytes| progress.advance(bytes);
        let damage = examine(&directory.join(name), size, Some(sha256), advance).err();
        damage.inspect(|damage| print_line(format_args!("{name} {damage}"))).is_some()
    };
    damage.dump = is_damaged(DUMP, header.dump.size, &header.dump.sha256);
    for content in manifest.contents()? {
        let content = content?;
        ids.push(content.id);
        if is_damaged(&format!("{CONTENTS}/{}", content.id), content.size, &content.sha256) {
            damage.contents.push(content.id);
        }
    }
    damage.unknown = report_unknown(&contents, &ids)?;
    Ok(damage)
}

/// Prints a line for each entry of the directory of contents that is not named by one of these ids, which are in
/// ascending order. Returns their number.
fn report_unknown(directory: &Path, ids: &[Uuid]) -> Result<u64, String> {
    let failed = |e: io::Error| format!("{}: {e}", directory.display());
    let mut unknown = 0;
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        // A UUID can be spelt in several ways, of which a backup uses one.
        let id = Uuid::try_parse(&name).ok().filter(|id| id.to_string() == name);
        if id.is_none_or(|id| ids.binary_search(&id).is_err()) {
            print_line(format_args!("{CONTENTS}/{} is not in the manifest", name.escape_debug()));
            unknown += 1;
        }
    }
    Ok(unknown)
}

impl DamagedParts {
    /// Says in a line what is damaged; `None` if nothing is.
    pub fn summary(&self) -> Option<String> {
        let contents = Some(self.contents.len()).filter(|n| *n > 0);
        let unknown = Some(self.unknown).filter(|n| *n > 0);
        let parts = [
            self.dump.then(|| "the dump of the database".to_owned()),
            contents.map(|n| format!("contents: {n}")),
            unknown.map(|n| format!("files that the manifest does not name: {n}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
