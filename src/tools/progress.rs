//! Shows how far a command has come that may take long: on a terminal as a line that is written over and over,
//! otherwise as a line a minute. Both go to standard error, because standard output is for what the command did.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::quantity::bytes;

/// How often the line on a terminal is written anew.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);
/// How often a line is written to anything but a terminal.
const LINE_PERIOD: Duration = Duration::from_secs(60);
/// Goes to the beginning of a terminal's line and erases it (ECMA-48, EL).
const ERASE: &str = "\r\x1b[K";

/// How much of a step of a command is done. Dropping it removes its line from the terminal.
pub struct Progress {
    step: &'static str,
    /// Formats an amount of what is counted.
    format: fn(u64) -> String,
    total: Option<u64>,
    done: u64,
    is_terminal: bool,
    next_line: Instant,
}

impl Progress {
    /// Begins a step, named by what it does, such as `copying contents`, that counts bytes. `total` is how much there
    /// is to do; `None` if that is unknown.
    pub fn of_bytes(step: &'static str, total: Option<u64>) -> Progress {
        Progress::new(step, bytes, total)
    }

    /// Begins a step that counts things.
    pub fn of_items(step: &'static str, total: Option<u64>) -> Progress {
        Progress::new(step, |number| number.to_string(), total)
    }

    fn new(step: &'static str, format: fn(u64) -> String, total: Option<u64>) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let wait = if is_terminal { Duration::ZERO } else { LINE_PERIOD };
        let next_line = Instant::now() + wait;
        let mut progress = Progress { step, format, total, done: 0, is_terminal, next_line };
        progress.advance(0);
        progress
    }

    /// Notes that so much more is done.
    pub fn advance(&mut self, amount: u64) {
        self.done += amount;
        let now = Instant::now();
        if now < self.next_line {
            return;
        }
        let mut text = format!("{}: {}", self.step, (self.format)(self.done));
        if let Some(total) = self.total {
            text += &format!(" of {}", (self.format)(total));
        }
        if self.is_terminal {
            self.next_line = now + TERMINAL_PERIOD;
            write(&format!("{ERASE}{text}"));
        } else {
            self.next_line = now + LINE_PERIOD;
            write(&format!("{text}\n"));
        }
    }

    /// Removes the line from the terminal, so that others can be written. The next advance may bring it back.
    pub fn erase(&self) {
        if self.is_terminal {
            write(ERASE);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.erase();
    }
}

/// Writes to standard error. Ignores errors: the reader may be gone, which must not stop the work.
fn write(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}
