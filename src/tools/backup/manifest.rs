//! `manifest.json` of a backup: the list of what the backup must contain, with sizes and hashes.
//!
//! The file is one JSON object, laid out in lines so that it can be written and read in little memory and be looked
//! through with `grep`:
//!
//! ```text
//! {"format":1,"created_at":"2026-01-02T03:04:05.000000Z", ... ,"contents":[
//! {"id":"6f1c...","size":11,"sha256":"b94d..."},
//! {"id":"93aa...","size":5,"sha256":"2cf2..."}
//! ],
//! "sha256":"8d96..."}
//! ```
//!
//! The hash in the last line is that of all lines before it, as `head -n -1 manifest.json | sha256sum` computes it, so
//! a manifest that was changed or cut short is noticed. The contents are in the order of their ids, each once.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::db::contents::RecordedContent;
use crate::model::hex;
use crate::tools::database::Totals;
use crate::tools::examination::open_regular;
use crate::tools::private_files::create_file;

/// The name of the file in the directory of a backup.
pub const FILE_NAME: &str = "manifest.json";
/// The layout that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;
/// Longest line, in bytes. The first one has about 500, the others have about 150.
const MAX_LINE: u64 = 4096;
/// The line between the last content and the hash.
const END_OF_CONTENTS: &str = "],\n";

/// The first line: everything but the contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The layout of the file, which is [`FORMAT`].
    pub format: u32,
    /// The time of the snapshot that dump and contents were made from: UTC, RFC 3339.
    pub created_at: String,
    /// One more than the number of the last backup of the installation in the same directory. Unlike times, it tells
    /// the order in which they were made also if the clock was wrong. 0 in backups of versions that did not number
    /// them.
    #[serde(default)]
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
    pub dump: Dump,
}

/// Size and hash of the dump of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    pub size: u64,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

/// The part of the first line that is read first, because a later format may have other members.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The last line of a manifest whose other lines have this hash.
fn last_line(hash: &mut Sha256) -> String {
    format!("\"sha256\":\"{}\"}}\n", hex(&hash.finalize_reset()))
}

/// Writes a manifest, content by content.
pub struct ManifestWriter {
    path: PathBuf,
    out: BufWriter<File>,
    /// The hash of what was written so far.
    hash: Sha256,
    /// How many contents, and bytes of contents, the header announces that were not added yet.
    missing_files: u64,
    missing_bytes: u64,
    last: Option<Uuid>,
}

impl ManifestWriter {
    /// Creates the file in the directory of a backup, readable only for this user. There must be none yet. On failure:
    /// what to tell the operator, which begins with the path.
    pub fn create(directory: &Path, header: &Header) -> Result<ManifestWriter, String> {
        let path = directory.join(FILE_NAME);
        let file = create_file(&path)?;
        let mut writer = ManifestWriter {
            path,
            out: BufWriter::new(file),
            hash: Sha256::new(),
            missing_files: header.totals.files,
            missing_bytes: header.totals.bytes,
            last: None,
        };
        let object = serde_json::to_string(header).map_err(|e| writer.failure(e))?;
        let members = object.strip_suffix('}').unwrap_or(&object);
        writer.write(&format!("{members},\"contents\":["))?;
        Ok(writer)
    }

    /// Adds a content. They come in the ascending order of their ids, so none comes twice.
    pub fn add(&mut self, content: &RecordedContent) -> Result<(), String> {
        if self.last.is_some_and(|last| last >= content.id) {
            return Err(self.failure(format!("{} comes too late", content.id)));
        }
        let too_many = || self.failure("more contents than were counted");
        let files = self.missing_files.checked_sub(1).ok_or_else(too_many)?;
        let bytes = self.missing_bytes.checked_sub(content.size).ok_or_else(too_many)?;
        (self.missing_files, self.missing_bytes) = (files, bytes);
        let line = serde_json::to_string(content).map_err(|e| self.failure(e))?;
        let separator = if self.last.replace(content.id).is_none() { "" } else { "," };
        self.write(&format!("{separator}\n{line}"))
    }

    /// Writes the end of the file. Fails unless as many contents with as many bytes came as the header says. The file
    /// is not synced.
    pub fn finish(mut self) -> Result<(), String> {
        if (self.missing_files, self.missing_bytes) != (0, 0) {
            return Err(self.failure("fewer contents than were counted"));
        }
        self.write(&format!("\n{END_OF_CONTENTS}"))?;
        let last_line = last_line(&mut self.hash);
        self.write(&last_line)?;
        self.out.flush().map_err(|e| self.failure(e))
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        self.hash.update(text);
        self.out.write_all(text.as_bytes()).map_err(|e| self.failure(e))
    }

    fn failure(&self, fault: impl Display) -> String {
        format!("{}: {fault}", self.path.display())
    }
}

/// A manifest that was read to its end once, and is as it was written.
pub struct Manifest {
    pub header: Header,
    file: File,
    path: PathBuf,
}

impl Manifest {
    /// Reads the manifest of a backup to its end, and fails unless its hash is right. On failure: what to tell the
    /// operator, which begins with the path.
    pub fn open(directory: &Path) -> Result<Manifest, String> {
        let path = directory.join(FILE_NAME);
        let describe = |fault: String| format!("{}: {fault}", path.display());
        let file = open_regular(&path).map_err(|damage| describe(format!("it {damage}")))?;
        let header = Lines::new(&file).check().map_err(describe)?;
        Ok(Manifest { header, file, path })
    }

    /// Returns the sequence number of a backup without a look at the rest of its manifest; 0 if that cannot be read.
    pub fn sequence_of(directory: &Path) -> u64 {
        let header = open_regular(&directory.join(FILE_NAME))
            .map_err(|damage| damage.to_string())
            .and_then(|file| Lines::new(file).header());
        header.map_or(0, |header| header.sequence)
    }

    /// Returns the contents, in the order of their ids, read again from the beginning of the file that was checked.
    /// Errors are those of [`Manifest::open`].
    pub fn contents(
        &self,
    ) -> Result<impl Iterator<Item = Result<RecordedContent, String>>, String> {
        let describe = |fault: String| format!("{}: {fault}", self.path.display());
        let mut file = &self.file;
        file.rewind().map_err(|e| describe(e.to_string()))?;
        let mut lines = Lines::new(file);
        lines.header().map_err(describe)?;
        let contents = std::iter::from_fn(move || lines.content().transpose());
        Ok(contents.map(move |content| content.map_err(describe)))
    }
}

/// The lines of a manifest. Errors say what is wrong with the file, and follow its path.
struct Lines<R> {
    from: BufReader<R>,
    /// The number of the line that was read last.
    number: u64,
    /// The hash of all lines read.
    hash: Sha256,
}

impl<R: Read> Lines<R> {
    fn new(from: R) -> Lines<R> {
        Lines { from: BufReader::new(from), number: 0, hash: Sha256::new() }
    }

    /// Reads all of them, and compares the hash.
    fn check(&mut self) -> Result<Header, String> {
        let header = self.header()?;
        while self.content()?.is_some() {}
        let last_line = last_line(&mut self.hash);
        if self.next()? != last_line {
            return Err("it was changed: the hash at its end is not that of its lines".into());
        }
        match self.from.fill_buf() {
            Ok([]) => Ok(header),
            Ok(_) => Err("something follows its end".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn header(&mut self) -> Result<Header, String> {
        let object = self.next()? + "]}";
        let Format { format } = self.parse(&object)?;
        if format != FORMAT {
            return Err(format!(
                "it has format {format}, but this program reads format {FORMAT}: use a newer cloakroom"
            ));
        }
        self.parse(&object)
    }

    /// The next content; `None` after the last one.
    fn content(&mut self) -> Result<Option<RecordedContent>, String> {
        let line = self.next()?;
        if line == END_OF_CONTENTS {
            return Ok(None);
        }
        self.parse(line.trim_end_matches(['\n', ','])).map(Some)
    }

    /// The next line, with its line end.
    fn next(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.from.by_ref().take(MAX_LINE).read_line(&mut line);
        read.map_err(|e| e.to_string())?;
        self.number += 1;
        if !line.ends_with('\n') {
            return Err(format!("it was cut short or changed: line {} has no end", self.number));
        }
        self.hash.update(&line);
        Ok(line)
    }

    fn parse<T: DeserializeOwned>(&self, json: &str) -> Result<T, String> {
        serde_json::from_str(json).map_err(|e| format!("it was changed: line {}: {e}", self.number))
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use std::fs;

    /// A new directory, removed when this is dropped.
    struct Directory(PathBuf);

    impl Directory {
        fn create() -> Directory {
            let path = Path::new("/tmp").join(format!("cloakroom-manifest-{}", Uuid::new_v4()));
            fs::create_dir(&path).expect("a directory");
            Directory(path)
        }

        /// Writes a manifest of these sizes and returns its text.
        fn write(&self, sizes: &[u64]) -> Result<String, String> {
            let _ = fs::remove_file(self.0.join(FILE_NAME));
            let mut writer = ManifestWriter::create(&self.0, &header(2, 30))?;
            for content in contents(sizes) {
                writer.add(&content)?;
            }
            writer.finish()?;
            Ok(fs::read_to_string(self.0.join(FILE_NAME)).expect("a manifest"))
        }

        /// What [`Manifest::open`] says about this text.
        fn fault(&self, text: &str) -> String {
            fs::write(self.0.join(FILE_NAME), text).expect("written");
            let fault = Manifest::open(&self.0).err().expect("a fault");
            let path = format!("{}: ", self.0.join(FILE_NAME).display());
            fault.strip_prefix(&path).expect("the path").to_owned()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn header(files: u64, bytes: u64) -> Header {
        Header {
            format: FORMAT,
            created_at: "2026-01-02T03:04:05.000000Z".into(),
            sequence: 3,
            cloakroom: "0.1.0".into(),
            postgresql: "15.14".into(),
            schema_version: 9,
            installation_id: Uuid::from_u128(7),
            totals: Totals { users: 1, files, bytes },
            dump: Dump { size: 5, sha256: "ab".repeat(32) },
        }
    }

    fn contents(sizes: &[u64]) -> Vec<RecordedContent> {
        let content = |(n, size): (usize, &u64)| RecordedContent {
            id: Uuid::from_u128(n as u128),
            size: *size,
            sha256: "cd".repeat(32),
        };
        sizes.iter().enumerate().map(content).collect()
    }

    #[test]
    fn what_was_written_is_read_again_as_often_as_asked() {
        let directory = Directory::create();
        directory.write(&[10, 20]).expect("a manifest");
        let manifest = Manifest::open(&directory.0).expect("a manifest");
        assert_eq!(manifest.header, header(2, 30));
        for _ in 0..2 {
            let read: Result<Vec<_>, _> = manifest.contents().expect("contents").collect();
            assert_eq!(read.expect("contents"), contents(&[10, 20]));
        }
    }

    #[test]
    fn the_file_is_one_json_object_whose_last_member_is_the_hash_of_the_lines_before() {
        let directory = Directory::create();
        let text = directory.write(&[10, 20]).expect("a manifest");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&json["format"], &json["files"]), (&1.into(), &2.into()));
        assert_eq!(json["contents"][1]["size"], 20);
        let (before, _) = text.rsplit_once("\"sha256\"").expect("a hash");
        assert_eq!(json["sha256"], hex(&Sha256::digest(before)));
        let empty = ManifestWriter::create(&Directory::create().0, &header(0, 0));
        assert!(empty.and_then(ManifestWriter::finish).is_ok());
    }

    #[test]
    fn contents_that_are_not_those_announced_or_not_in_order_are_refused() {
        let directory = Directory::create();
        for sizes in [&[10][..], &[10, 20, 0], &[10, 21], &[10, 19], &[]] {
            assert!(directory.write(sizes).is_err(), "{sizes:?}");
        }
        fs::remove_file(directory.0.join(FILE_NAME)).expect("removed");
        let mut writer = ManifestWriter::create(&directory.0, &header(2, 20)).expect("a writer");
        let content = contents(&[10]).remove(0);
        writer.add(&content).expect("added");
        assert!(writer.add(&content).expect_err("twice").contains("comes too late"));
        assert!(ManifestWriter::create(&directory.0, &header(0, 0)).is_err(), "it exists");
    }

    #[test]
    fn a_manifest_that_was_changed_anywhere_or_cut_anywhere_is_refused() {
        let directory = Directory::create();
        let text = directory.write(&[10, 20]).expect("a manifest");
        for at in 0..text.len() {
            directory.fault(&text[..at]);
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            directory.fault(&String::from_utf8(bytes).unwrap());
        }
        for (changed, fault) in [
            (text.replace(":20,", ":21,"), "it was changed: the hash at its end"),
            (text.clone() + "\n", "something follows its end"),
            (text.replace("\"format\":1", "\"format\":2"), "it has format 2"),
            (text.replace("\"files\":2,", ""), "it was changed: line 1: missing field `files`"),
            (text[..text.len() - 10].to_owned(), "line 5 has no end"),
            ("x".repeat(10_000), "line 1 has no end"),
            (String::new(), "line 1 has no end"),
        ] {
            let found = directory.fault(&changed);
            assert!(found.contains(fault), "{found}");
        }
        fs::remove_file(directory.0.join(FILE_NAME)).expect("removed");
        assert!(Manifest::open(&directory.0).err().expect("none").contains("it is missing"));
    }
}
