//! A request's body, which handlers read when they need it.

use std::io::Read;

/// The body of one request.
pub struct Body<'a> {
    /// Gives the body's bytes.
    pub reader: Box<dyn Read + 'a>,
    /// `Content-Length`, where there is one.
    pub announced: Option<u64>,
}

impl<'a> Body<'a> {
    /// A body read from `reader`, which ends where the body ends; `announced` is its `Content-Length`.
    pub fn new(reader: impl Read + 'a, announced: Option<u64>) -> Body<'a> {
        Body { reader: Box::new(reader), announced }
    }
}
