//! What a whole backup consists of, and whether it still is what it was. The directory of a backup has the dump of the
//! database, the contents, `contents.sha256` and `manifest.json`.
//!
//! `contents.sha256` names each content with its SHA-256, in the order of ids, in the lines of `sha256sum`: in the
//! directory of the backup, `sha256sum --check contents.sha256` reads all of them. The manifest has the hashes of this
//! list and of the dump, so a list that was changed or cut short is noticed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::tools::database::Totals;
use crate::tools::files::{AtPath, Checksum, create_file, examine, open_regular};
use crate::tools::output::{Names, Progress, bytes, print_line};

/// The manifest, in the directory of a backup.
pub const MANIFEST: &str = "manifest.json";
/// The dump of the database.
pub const DUMP: &str = "database.dump";
/// The directory of the contents. Each has its id as its name.
pub const CONTENTS: &str = "files";
/// The list of the contents.
pub const LIST: &str = "contents.sha256";
/// The end of the name of a directory whose backup is not whole.
pub const PARTIAL: &str = ".partial";
/// The layout that this version writes, and the only one that it reads.
pub const LAYOUT: u64 = 2;

/// The manifest: everything but the list of contents.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    /// The layout of the directory, which is [`LAYOUT`].
    pub format: u64,
    /// The time of the snapshot that dump and contents were made from: UTC, RFC 3339.
    pub created_at: String,
    /// One more than the number of the last backup of the installation in the same directory. Unlike times, it tells
    /// the order in which they were made also if the clock was wrong.
    pub sequence: u64,
    /// The version of this program.
    pub cloakroom: String,
    /// The version of the PostgreSQL server, such as `15.14`.
    pub postgresql: String,
    /// The number of the last applied migration.
    pub schema_version: i32,
    pub installation_id: Uuid,
    /// How many accounts and contents there are.
    #[serde(flatten)]
    pub totals: Totals,
    pub dump: Checksum,
    /// That of the list.
    pub contents: Checksum,
}

/// A whole backup, whose list of contents was read to its end once.
pub struct Backup {
    pub path: PathBuf,
    pub manifest: Manifest,
}

/// The parts of a backup that are damaged. Manifest and list are not among them: if one of those is damaged, nothing is
/// known about the rest.
#[derive(Default)]
pub struct DamagedParts {
    /// Whether the dump is damaged or missing.
    pub dump: bool,
    /// The contents that are damaged or missing, in the order of their ids.
    pub contents: Vec<Uuid>,
    /// Number of files beside the contents that the list does not name.
    pub unknown: u64,
}

impl Manifest {
    /// Writes the manifest of a new backup. On failure: what to tell the operator.
    pub fn write(&self, backup: &Path) -> Result<(), String> {
        let path = backup.join(MANIFEST);
        serde_json::to_writer_pretty(create_file(&path)?, self).at(&path)
    }

    /// Reads the manifest of a backup. On failure: what to tell the operator, which begins with its path.
    pub fn read(backup: &Path) -> Result<Manifest, String> {
        let path = backup.join(MANIFEST);
        let file = open_regular(&path).map_err(|damage| format!("it {damage}")).at(&path)?;
        let changed = |e| format!("it was cut short or changed: {e}");
        let json: Value =
            serde_json::from_reader(BufReader::new(file)).map_err(changed).at(&path)?;
        // This is looked at first, because the manifests of other layouts may have other members.
        let format = json["format"].as_u64().unwrap_or(LAYOUT);
        if format == LAYOUT {
            return serde_json::from_value(json).map_err(changed).at(&path);
        }
        let advice = match format > LAYOUT {
            true => "use a newer cloakroom",
            false => "make a new backup, or use the cloakroom that made this one",
        };
        Err(format!("it has format {format}, but this program reads format {LAYOUT}: {advice}"))
            .at(&path)
    }
}

impl Backup {
    /// Opens a backup, and reads its list of contents. Fails if it is not whole, or if manifest or list are damaged. On
    /// failure: what to tell the operator.
    pub fn open(directory: &Path) -> Result<Backup, String> {
        let path = fs::canonicalize(directory).at(directory)?;
        let name = path.display();
        if name.to_string().ends_with(PARTIAL) {
            return Err(format!("{name} is not whole: it is what an interrupted backup left"));
        }
        if fs::symlink_metadata(path.join(MANIFEST)).is_err() {
            return Err(format!(
                "{name} is no backup, because it has no {MANIFEST}: name the directory of one backup, such as \
                 2026-01-02T03-04-05Z"
            ));
        }
        let manifest = Manifest::read(&path)?;
        let Checksum { size, sha256 } = &manifest.contents;
        if let Some(damage) = examine(&path.join(LIST), Some(*size), Some(sha256)) {
            return Err(format!("{name}: {LIST} {damage}: nothing is known of the contents"));
        }
        Ok(Backup { path, manifest })
    }

    /// Reads the list again: the ids of the contents in their order, each with its SHA-256 in hexadecimal.
    pub fn contents(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Uuid, String), String>> + use<>, String> {
        let path = self.path.join(LIST);
        let file = open_regular(&path).map_err(|damage| format!("{} {damage}", path.display()))?;
        Ok(BufReader::new(file).lines().map(move |line| {
            let line = line.at(&path)?;
            parse(&line).ok_or_else(|| format!("{}: {line:?} names no content", path.display()))
        }))
    }

    /// Reads the dump and every content, and names what is missing, damaged, or not in the list. Fails only if that
    /// cannot be found out.
    pub fn find_damage(&self, mut names: Names) -> Result<DamagedParts, String> {
        let manifest = &self.manifest;
        let contents = contents_of(&self.path).ok_or_else(|| {
            format!("{} is missing or not a directory", self.path.join(CONTENTS).display())
        })?;
        let mut progress = Progress::begin("verifying contents", Some(manifest.totals.files));
        let mut damage = DamagedParts::default();
        // The ids of a million contents take 16 MB.
        let mut ids = Vec::new();
        let mut is_damaged = |name: &str, size, sha256: &str| {
            let damage = examine(&self.path.join(name), size, Some(sha256));
            let name_it = |damage: &_| names.print("damaged", format_args!("{name} {damage}"));
            damage.inspect(name_it).is_some()
        };
        damage.dump = is_damaged(DUMP, Some(manifest.dump.size), &manifest.dump.sha256);
        for content in self.contents()? {
            let (id, sha256) = content?;
            ids.push(id);
            if is_damaged(&format!("{CONTENTS}/{id}"), None, &sha256) {
                damage.contents.push(id);
            }
            progress.advance(1);
        }
        damage.unknown = report_unknown(&contents, &ids, &mut names)?;
        names.end();
        Ok(damage)
    }
}

/// Parses a line of the list.
fn parse(line: &str) -> Option<(Uuid, String)> {
    let (sha256, name) = line.split_once("  ")?;
    let id = name.strip_prefix(CONTENTS)?.strip_prefix('/')?;
    Some((id.parse().ok()?, sha256.to_owned()))
}

/// Names each entry of the directory of contents that none of these ids names, which are in ascending order. Returns
/// their number.
fn report_unknown(directory: &Path, ids: &[Uuid], names: &mut Names) -> Result<u64, String> {
    let mut unknown = 0;
    for entry in fs::read_dir(directory).at(directory)? {
        let name = entry.at(directory)?.file_name();
        let name = name.to_string_lossy();
        // A UUID can be spelt in several ways, of which a backup uses one.
        let id = Uuid::try_parse(&name).ok().filter(|id| id.to_string() == name);
        if id.is_none_or(|id| ids.binary_search(&id).is_err()) {
            let line = format_args!("{CONTENTS}/{} is not in {LIST}", name.escape_debug());
            names.print("unknown", line);
            unknown += 1;
        }
    }
    Ok(unknown)
}

/// The directory of the contents of a backup. A symbolic link would show what is elsewhere, such as the data directory.
pub fn contents_of(backup: &Path) -> Option<PathBuf> {
    let contents = backup.join(CONTENTS);
    fs::symlink_metadata(&contents).is_ok_and(|found| found.is_dir()).then_some(contents)
}

impl DamagedParts {
    /// Says in a line what is damaged; `None` if nothing is.
    pub fn summary(&self) -> Option<String> {
        let (contents, unknown) = (self.contents.len(), self.unknown);
        let parts = [
            self.dump.then(|| "the dump of the database".to_owned()),
            (contents > 0).then(|| format!("contents: {contents}")),
            (unknown > 0).then(|| format!("files that {LIST} does not name: {unknown}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Runs `cloakroom backup --verify DIR/<UTC time>`: reads everything that a backup consists of. It uses no database and
/// no settings, so that backups can be verified on any machine. Fails if anything is damaged, after it has named that.
pub fn verify(directory: &Path, all: bool) -> Result<(), String> {
    let backup = Backup::open(directory)?;
    let damage = backup.find_damage(Names::new(all))?;
    let Backup { path, manifest } = backup;
    if let Some(summary) = damage.summary() {
        return Err(format!("{} is damaged: {summary}", path.display()));
    }
    let (totals, dump) = (manifest.totals, bytes(manifest.dump.size));
    print_line(format_args!("{} is whole: {totals}, and a dump of {dump}.", path.display()));
    Ok(())
}
