//! A new file that is written with direct I/O: past the page cache of the kernel.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};

use super::file_system::create_file;

/// Bytes that are written at a time. Longer pieces cost less, because each is waited for, but each running upload needs
/// the memory for one.
const PIECE_BYTES: usize = 256 * 1024;
/// Direct I/O needs memory that begins at a multiple of the device's block size, which is at most this.
const ALIGNMENT: usize = 4096;

/// A file that is written once, from its beginning to its end. Whole pieces are written with direct I/O (`O_DIRECT`),
/// the rest through the page cache, and so is everything on a file system that has no direct I/O.
///
/// A content is synced before it is acknowledged, so the page cache cannot save any wait for the disk. It would only
/// cost a copy, and displace pages that are read more often, such as the database's.
pub(super) struct DirectFile {
    file: File,
    /// From `start` on it holds the bytes that are not written yet. Those before it are padding, which makes them begin
    /// at a multiple of [`ALIGNMENT`].
    buffer: Vec<u8>,
    start: usize,
    /// Bytes in the file so far.
    written: u64,
}

impl DirectFile {
    /// Creates an empty file, readable only for this user. Fails if there is one at `path` already.
    pub(super) fn create(path: &Path) -> io::Result<DirectFile> {
        let file = create_file(path)?;
        // The capacity is never exceeded, so the bytes stay at this address. Bytes can always be aligned.
        let mut buffer: Vec<u8> = Vec::with_capacity(ALIGNMENT + PIECE_BYTES);
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        buffer.resize(start, 0);
        Ok(DirectFile { file, buffer, start, written: 0 })
    }

    /// Appends `bytes`.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.start + PIECE_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if now.len() == room {
                self.write_piece()?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and returns the file, to be synced or read. It is complete then: more may not be added.
    pub(super) fn finish(&mut self) -> io::Result<&File> {
        fcntl_setfl(&self.file, OFlags::empty())?;
        self.write_buffer()?;
        Ok(&self.file)
    }

    /// Writes a whole piece.
    fn write_piece(&mut self) -> io::Result<()> {
        // Not every file system has direct I/O, and some of them only say so when it is tried (`EINVAL`).
        if fcntl_setfl(&self.file, OFlags::DIRECT).is_ok() {
            match self.write_buffer() {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                result => return result,
            }
        }
        fcntl_setfl(&self.file, OFlags::empty())?;
        self.write_buffer()
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let bytes = self.buffer.get(self.start..).unwrap_or_default();
        self.file.write_all_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        self.buffer.truncate(self.start);
        Ok(())
    }
}
