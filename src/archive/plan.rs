//! What an archive is before its first byte is sent: its length, and a tag of all its bytes. The list of its files is
//! not kept, only what tells whether a later one is the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::format::{self, FORM, Member};
use super::names::{Paths, numbered, path};
use super::statements::{Entry, Position};
use crate::error::Error;
use crate::model::hex;
use crate::model::timestamp::Timestamp;

/// How many files are read at a time while an archive is planned.
pub const BATCH: usize = 1000;

/// Reads a batch of the files after a place.
pub type List<'a> = dyn Fn(&Position) -> Result<Vec<Entry>, Error> + 'a;

/// An archive that can be sent.
pub struct Plan {
    /// When its files were counted. Those that come later are not in it.
    began: Timestamp,
    /// Of each file, in the order of the archive, a hash of its id and version: 8 bytes a file.
    pub files: Vec<u64>,
    /// The numbers in the names of those that would be like another one, by their places.
    numbers: HashMap<usize, u32>,
    /// Where the directory is.
    pub directory: Range<u64>,
    /// Of the whole archive, in bytes.
    pub length: u64,
    /// The entity tag.
    pub tag: String,
}

impl Plan {
    /// Plans the archive of the files that `list` reads in batches of [`BATCH`], twice if names must be told apart.
    /// They were counted at `began`. Fails with [`Error::Unavailable`] if they change meanwhile.
    pub fn make(list: &List, began: Timestamp) -> Result<Plan, Error> {
        let mut plan = Plan::begun(began);
        let (mut paths, mut measure) = (Paths::default(), Measure::new());
        read_all(list, |entry| {
            let path = path(&entry);
            paths.add(&path, entry.id);
            plan.files.push(fingerprint(&entry));
            measure.add(&entry, path);
            Ok(())
        })?;
        let mut numbers = paths.numbers();
        if numbers.is_empty() {
            return Ok(measure.finish(plan));
        }
        let (mut measure, mut place) = (Measure::new(), 0);
        read_all(list, |entry| {
            if !plan.is_next(place, &entry).map_err(|_| Error::Unavailable)? {
                return Ok(());
            }
            let path = path(&entry);
            plan.numbers.extend(numbers.of(place, &path).map(|number| (place, number)));
            measure.add(&entry, plan.numbered(place, path));
            place += 1;
            Ok(())
        })?;
        if place < plan.files.len() {
            return Err(Error::Unavailable);
        }
        Ok(measure.finish(plan))
    }

    /// Whether this is the file at a place of the archive; it is not if it has come since, and then it is left out.
    /// Fails with [`Error::FileNotFound`] if it is another one, so that the one at this place is not where it was.
    pub fn is_next(&self, place: usize, entry: &Entry) -> Result<bool, Error> {
        let is_planned = self.files.get(place) == Some(&fingerprint(entry));
        if !is_planned && entry.upload_date <= self.began {
            return Err(Error::FileNotFound);
        }
        Ok(is_planned)
    }

    /// The bytes that it takes.
    pub fn memory(&self) -> usize {
        size_of::<u64>() * self.files.len() + 4 * size_of::<(usize, u32)>() * self.numbers.len()
    }

    fn begun(began: Timestamp) -> Plan {
        let (files, numbers, tag) = (Vec::new(), HashMap::new(), String::new());
        Plan { began, files, numbers, directory: 0..0, length: 0, tag }
    }

    fn numbered(&self, place: usize, path: String) -> String {
        match self.numbers.get(&place) {
            Some(number) => numbered(&path, *number),
            None => path,
        }
    }

    /// What the archive says of the file at this place, which begins at `offset`.
    pub fn member(&self, place: usize, entry: &Entry, offset: u64) -> Member {
        member(entry, self.numbered(place, path(entry)), offset)
    }

    /// The end of the archive.
    pub fn end(&self) -> Vec<u8> {
        let Range { start, end } = self.directory;
        format::end(self.files.len() as u16, start, end - start)
    }
}

/// A hash of what makes a file the same one. Ids are random, so nobody can choose what it is.
fn fingerprint(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    (entry.id, entry.version).hash(&mut hasher);
    hasher.finish()
}

fn member(entry: &Entry, path: String, offset: u64) -> Member {
    Member {
        path,
        crc32: entry.crc32.cast_unsigned(),
        size: entry.file_size as u64,
        modified: entry.updated_at.0,
        offset,
    }
}

fn read_all(list: &List, mut each: impl FnMut(Entry) -> Result<(), Error>) -> Result<(), Error> {
    let mut after = Position::default();
    loop {
        let batch = list(&after)?;
        let (count, last) = (batch.len(), batch.last().map(Position::after));
        batch.into_iter().try_for_each(&mut each)?;
        match last {
            Some(last) if count == BATCH => after = last,
            _ => return Ok(()),
        }
    }
}

/// The length of an archive, and a hash of all that its bytes depend on.
struct Measure {
    offset: u64,
    directory_size: u64,
    digest: Sha256,
}

impl Measure {
    fn new() -> Measure {
        Measure {
            offset: 0,
            directory_size: 0,
            digest: Sha256::new_with_prefix(FORM.to_le_bytes()),
        }
    }

    fn add(&mut self, entry: &Entry, path: String) {
        let member = member(entry, path, self.offset);
        let header = member.directory_header();
        // The header says where the name ends, and everything else has one length.
        self.digest.update(entry.id.as_bytes());
        self.digest.update(&entry.file_hash);
        self.digest.update(entry.updated_at.0.unix_timestamp_nanos().to_le_bytes());
        self.digest.update(&header);
        self.offset += member.header().len() as u64 + member.size;
        self.directory_size += header.len() as u64;
    }

    fn finish(self, plan: Plan) -> Plan {
        let directory = self.offset..self.offset + self.directory_size;
        let tag = format!("\"{}\"", hex(&self.digest.finalize()));
        let plan = Plan { directory, tag, ..plan };
        Plan { length: plan.directory.end + plan.end().len() as u64, ..plan }
    }
}
