//! `cloakroom backup --verify DIR/<UTC time>`: reads everything that a backup consists of, and compares it with the
//! manifest.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::manifest::{FILE_NAME, Manifest};
use super::{CONTENTS, DUMP, PARTIAL};
use crate::commands::print_line;
use crate::commands::progress::{Progress, Unit};
use crate::storage::copy_hashed;

/// What is damaged in a backup. A damaged manifest is none of it, because then nothing is known about the rest.
#[derive(Default)]
pub struct Damage {
    /// Whether the dump is damaged or missing.
    pub dump: bool,
    /// The contents that are damaged or missing, in the order of their ids.
    pub contents: Vec<Uuid>,
    /// Number of files beside the contents that the manifest does not name.
    pub unknown: u64,
}

/// Runs the command. It uses no database and no settings, so that backups can be verified on any machine. Fails where
/// anything is damaged, after it has printed a line for each.
pub fn verify(directory: &Path) -> Result<(), String> {
    let (directory, manifest) = open(directory)?;
    let damage = find_damage(&directory, &manifest)?;
    if let Some(summary) = damage.summary() {
        return Err(format!("{} is damaged: {summary}", directory.display()));
    }
    let header = manifest.header;
    print_line(format_args!(
        "{} is whole: {} users, {} files, {} bytes, and a dump of {} bytes.",
        directory.display(),
        header.users,
        header.files,
        header.bytes,
        header.dump.size
    ));
    Ok(())
}

/// Opens a backup, and returns its absolute path. Fails where it is not whole, or its manifest is damaged. On failure:
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
    if !directory.join(FILE_NAME).exists() {
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
/// only where that cannot be found out.
pub fn find_damage(directory: &Path, manifest: &Manifest) -> Result<Damage, String> {
    let header = &manifest.header;
    let total = header.bytes.saturating_add(header.dump.size);
    let mut progress = Progress::new("verifying the backup", Unit::Bytes, Some(total));
    let mut damage = Damage::default();
    // The ids of a million contents take 16 MB.
    let mut ids = Vec::new();
    let mut fault_of = |name: &str, size, sha256: &str| {
        let advance = |bytes| progress.advance(bytes);
        let fault = compare(&directory.join(name), size, sha256, advance).err();
        fault.inspect(|fault| print_line(format_args!("{name}: {fault}"))).is_some()
    };
    damage.dump = fault_of(DUMP, header.dump.size, &header.dump.sha256);
    for content in manifest.contents()? {
        let content = content?;
        ids.push(content.id);
        if fault_of(&format!("{CONTENTS}/{}", content.id), content.size, &content.sha256) {
            damage.contents.push(content.id);
        }
    }
    damage.unknown = report_unknown(&directory.join(CONTENTS), &ids)?;
    Ok(damage)
}

/// Compares a file with its size and its hash. The error says what is wrong with it, and follows its name.
fn compare(path: &Path, size: u64, sha256: &str, advance: impl FnMut(u64)) -> Result<(), String> {
    let found = fs::symlink_metadata(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => "missing".into(),
        _ => e.to_string(),
    })?;
    if !found.is_file() {
        return Err("not a file".into());
    }
    let right_size =
        |found| if found == size { Ok(()) } else { Err(format!("{found} bytes, not {size}")) };
    right_size(found.len())?;
    let file = File::open(path).map_err(|e| e.to_string())?;
    let (read, hash) = copy_hashed(file, io::sink(), advance).map_err(|e| e.to_string())?;
    right_size(read)?;
    if hash == sha256 { Ok(()) } else { Err("another hash than in the manifest".into()) }
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
            print_line(format_args!("{CONTENTS}/{}: not in the manifest", name.escape_debug()));
            unknown += 1;
        }
    }
    Ok(unknown)
}

impl Damage {
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
