//! Response bodies that are made in batches, such as exports.

use std::io::{self, Cursor, Read};

use crate::error::Error;

/// A body of which `next` makes a batch whenever the client has taken the one before; `None` is the end.
pub struct BatchedBody<F> {
    batch: Cursor<Vec<u8>>,
    next: F,
}

impl<F: FnMut() -> Result<Option<Vec<u8>>, Error>> BatchedBody<F> {
    pub fn new(first: Vec<u8>, next: F) -> BatchedBody<F> {
        BatchedBody { batch: Cursor::new(first), next }
    }
}

impl<F: FnMut() -> Result<Option<Vec<u8>>, Error>> Read for BatchedBody<F> {
    /// Fails where `next` does. The transfer then ends without its last chunk, so that no client takes a part for the
    /// whole.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.batch.position() == self.batch.get_ref().len() as u64 {
            let next = (self.next)().map_err(|error| {
                log::error!("an export broke off: {}", error.cause());
                io::Error::other("the export broke off")
            })?;
            match next {
                Some(batch) => self.batch = Cursor::new(batch),
                None => return Ok(0),
            }
        }
        self.batch.read(buffer)
    }
}
