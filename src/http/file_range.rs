//! A range of an open file, which the body of a response can be.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The bytes of `file` that are still to be sent. The file's own offset is neither used nor changed.
#[derive(Debug)]
pub struct FileRange {
    /// An open file whose content does not change.
    pub file: File,
    /// Where the range begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// The length of the range in bytes. A file that ends before that is an error of whoever sends it.
    pub length: u64,
}

impl FileRange {
    /// Moves the beginning of the range past `count` bytes, which have been sent.
    pub fn advance(&mut self, count: u64) {
        self.offset += count;
        self.length -= count;
    }
}

impl Read for FileRange {
    /// Reads from the beginning of the range and advances it.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.length).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..wanted], self.offset)?;
        self.advance(count as u64);
        Ok(count)
    }
}
