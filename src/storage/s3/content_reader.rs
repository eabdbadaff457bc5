//! The bytes of a content while they come from the store.

use std::io::{self, ErrorKind, Read};

use sha2::{Digest, Sha256};
use ureq::BodyReader;

use crate::model::hex;

/// Reads a content, or a part of it, and fails rather than end early. Of a whole content the hash is compared before
/// the last bytes are handed out, so a reader that gets all of them has what was uploaded. An error of the kind
/// `InvalidData` means that the store has something else.
pub struct ContentReader {
    body: BodyReader<'static>,
    /// Bytes that are still to come.
    left: u64,
    /// The hash of the bytes read so far, and the expected hash of all of them, for a whole content.
    check: Option<(Sha256, String)>,
}

impl ContentReader {
    /// `length` bytes must come. `sha256`, in hexadecimal, is that of a whole content.
    pub fn new(body: BodyReader<'static>, length: u64, sha256: Option<&str>) -> ContentReader {
        let check = sha256.map(|hash| (Sha256::new(), hash.to_owned()));
        ContentReader { body, left: length, check }
    }

    /// Compares the hash, and reads the end of the body, so that its connection can be used again.
    fn finish(&mut self) -> io::Result<()> {
        if let Some((found, expected)) = self.check.take()
            && hex(&found.finalize()) != expected
        {
            let text = "the store has another SHA-256 than is recorded";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        self.body.read(&mut [0]).map(drop)
    }
}

impl Read for ContentReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let Some(out) = out.get_mut(..wanted).filter(|out| !out.is_empty()) else { return Ok(0) };
        let count = self.body.read(out)?;
        if count == 0 {
            let text = "the store ended a content early";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
        if let Some((hash, _)) = &mut self.check {
            hash.update(out.get(..count).unwrap_or_default());
        }
        self.left -= count as u64;
        if self.left == 0 {
            self.finish()?;
        }
        Ok(count)
    }
}
