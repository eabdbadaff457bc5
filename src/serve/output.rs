//! Standard output of the commands that print what they were asked for.

use std::io::{self, ErrorKind, Write};

/// Writes `text` to standard output at once. Returns false if nobody reads it any more: a reader such as `head`, which
/// has seen enough and closes the pipe, is no failure.
pub fn print(text: &str) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output: {error}")),
    }
}
