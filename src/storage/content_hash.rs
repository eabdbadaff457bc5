//! The hash by which a content is recognised as whole.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use sha2::{Digest, Sha256};

use crate::model::hex::hex;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 * 1024;

/// On which side a copy failed: a content that cannot be read is damaged, a target that cannot be written is full.
#[derive(Debug)]
pub enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (CopyError::Read(error) | CopyError::Write(error)) = self;
        error.fmt(f)
    }
}

/// Copies all of `from` to `to`, and returns the number of bytes with their SHA-256 in hexadecimal. With [`io::sink`]
/// it only reads. `advance` is told the size of each piece, for showing the progress.
pub fn copy_hashed(
    mut from: impl Read,
    mut to: impl Write,
    mut advance: impl FnMut(u64),
) -> Result<(u64, String), CopyError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut size, mut hash) = (0, Sha256::new());
    loop {
        let piece = match from.read(&mut buffer) {
            Ok(0) => return Ok((size, hex(&hash.finalize()))),
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        to.write_all(piece).map_err(CopyError::Write)?;
        hash.update(piece);
        size += piece.len() as u64;
        advance(piece.len() as u64);
    }
}
