//! The bytes of an archive, made while they are sent.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec;

use uuid::Uuid;

use super::plan::Plan;
use super::statements::{Entry, Position};
use crate::error::Error;
use crate::files::handlers::content_body;
use crate::http::response::{ResponseBody, broken_off};
use crate::request::app::App;

/// How many files are read at a time. Whoever reads slowly keeps what is left of a batch in memory.
pub const BATCH: usize = 100;
/// The same before the range begins, when nothing is sent.
const SKIPPED_BATCH: usize = 1000;
/// How old a batch may be when the next of its files has its turn.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Reads at most so many files after a place, if whoever is sent the archive may still have it.
pub type List = dyn Fn(&Position, usize) -> Result<Vec<Entry>, Error> + Send;

/// The parts of a range of an archive. Fails once a file of it is gone or has another version, also if it has been sent
/// already, because the directory at the end needs its record.
pub struct Body {
    app: Arc<App>,
    plan: Plan,
    list: Box<List>,
    batch: vec::IntoIter<Entry>,
    read_at: Instant,
    /// The last file of the list that was taken.
    after: Position,
    /// The place of the next file.
    place: usize,
    /// Whether the contents are over, and the directory is made.
    is_directory: bool,
    /// Where the next file begins in the archive.
    offset: u64,
    pieces: VecDeque<Piece>,
    /// Bytes of the pieces to come before the range, and in it.
    skipped: u64,
    left: u64,
}

enum Piece {
    Bytes(Vec<u8>),
    Content { id: Uuid, size: u64, sha256: String },
}

impl Body {
    pub fn new(app: Arc<App>, plan: Plan, list: Box<List>, range: Range<u64>) -> Body {
        // A range of the directory alone needs no content.
        let is_directory = range.start >= plan.directory.start;
        let skipped = range.start - if is_directory { plan.directory.start } else { 0 };
        Body {
            app,
            plan,
            list,
            batch: Vec::new().into_iter(),
            read_at: Instant::now(),
            after: Position::default(),
            place: 0,
            is_directory,
            offset: 0,
            pieces: VecDeque::new(),
            skipped,
            left: range.end - range.start,
        }
    }

    /// Opens the next piece that the range has a part of; `None` after the last one.
    fn next_part(&mut self) -> Result<Option<ResponseBody>, Error> {
        while self.left > 0 {
            let Some(piece) = self.pieces.pop_front() else {
                self.make_pieces()?;
                continue;
            };
            let size = piece.size();
            let start = self.skipped.min(size);
            let end = size.min(start + self.left);
            self.skipped -= start;
            if start < end {
                self.left -= end - start;
                if self.batch.len() > BATCH {
                    // Not kept while this is sent.
                    self.batch = Vec::new().into_iter();
                }
                return self.open(piece, start..end).map(Some);
            }
        }
        Ok(None)
    }

    /// Makes the pieces of the next file, in front of its content and that, or in the directory, or the end.
    fn make_pieces(&mut self) -> Result<(), Error> {
        if self.place == self.plan.files.len() {
            if self.is_directory {
                self.pieces.push_back(Piece::Bytes(self.plan.end()));
            }
            self.is_directory = true;
            (self.place, self.offset, self.after) = (0, 0, Position::default());
            self.batch = Vec::new().into_iter();
            return Ok(());
        }
        let entry = self.next_file()?;
        let member = self.plan.member(self.place, &entry, self.offset);
        let header = member.header();
        self.offset += header.len() as u64 + member.size;
        self.place += 1;
        if self.is_directory {
            self.pieces.push_back(Piece::Bytes(member.directory_header()));
        } else {
            let content =
                Piece::Content { id: entry.id, size: member.size, sha256: entry.file_hash };
            self.pieces.extend([Piece::Bytes(header), content]);
        }
        Ok(())
    }

    /// The next file as it was planned. Fails with [`Error::FileNotFound`] if it is no longer so.
    fn next_file(&mut self) -> Result<Entry, Error> {
        loop {
            if self.batch.len() == 0 || self.read_at.elapsed() > MAX_AGE {
                self.read_at = Instant::now();
                let size = if self.skipped > 0 { SKIPPED_BATCH } else { BATCH };
                self.batch = (self.list)(&self.after, size)?.into_iter();
            }
            let entry = self.batch.next().ok_or(Error::FileNotFound)?;
            self.after = Position::after(&entry);
            if self.plan.is_next(self.place, &entry)? {
                return Ok(entry);
            }
        }
    }

    fn open(&self, piece: Piece, part: Range<u64>) -> Result<ResponseBody, Error> {
        match piece {
            Piece::Bytes(mut bytes) => {
                bytes.truncate(part.end as usize);
                bytes.drain(..part.start as usize);
                Ok(ResponseBody::Bytes(bytes.into()))
            }
            Piece::Content { id, size, sha256 } => {
                let content = self.app.storage.read(id, size, &sha256, part.clone())?;
                Ok(content_body(content, part))
            }
        }
    }
}

impl Piece {
    fn size(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Content { size, .. } => *size,
        }
    }
}

impl Iterator for Body {
    type Item = io::Result<ResponseBody>;

    fn next(&mut self) -> Option<io::Result<ResponseBody>> {
        self.next_part().map_err(|error| broken_off("an archive", &error)).transpose()
    }
}
