//! Shows how far a command has come that may take long: lines on standard error, because standard output is for what
//! the command did. On a terminal the first one comes at once, otherwise after a minute.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two lines on a terminal.
const TERMINAL_PERIOD: Duration = Duration::from_secs(10);
/// Time between two lines elsewhere, such as in a log.
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// How many of the items of a step are done.
pub struct Progress {
    /// What the step does, such as `copying contents`.
    step: &'static str,
    /// The number of all items; `None` if that is unknown.
    total: Option<u64>,
    done: u64,
    period: Duration,
    next_line: Instant,
}

impl Progress {
    /// Begins a step.
    pub fn begin(step: &'static str, total: Option<u64>) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let period = if is_terminal { TERMINAL_PERIOD } else { LOG_PERIOD };
        let wait = if is_terminal { Duration::ZERO } else { period };
        let mut progress =
            Progress { step, total, done: 0, period, next_line: Instant::now() + wait };
        progress.advance(0);
        progress
    }

    /// Notes that so many more items are done.
    pub fn advance(&mut self, items: u64) {
        self.done += items;
        let now = Instant::now();
        if now >= self.next_line {
            self.next_line = now + self.period;
            let done = match (self.done, self.total) {
                (0, None) => String::new(),
                (done, None) => format!(": {done}"),
                (done, Some(total)) => format!(": {done} of {total}"),
            };
            // The reader may be gone, which must not stop the work.
            drop(writeln!(io::stderr(), "{}{done}", self.step));
        }
    }
}
