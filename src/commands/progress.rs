//! Shows how far a command has come that may take long: on a terminal as a line that is written over and over,
//! otherwise as a line a minute. Both go to standard error, because standard output is for what the command did.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line on a terminal is written anew.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(60);
/// Goes to the beginning of a terminal's line and erases it (ECMA-48, EL).
const ERASE: &str = "\r\x1b[K";

/// What is counted.
#[derive(Clone, Copy)]
pub enum Unit {
    Bytes,
    Items,
}

/// A step of a command, and how much of it is done. Dropping it removes its line from the terminal.
pub struct Progress {
    step: &'static str,
    unit: Unit,
    total: Option<u64>,
    done: u64,
    begin: Instant,
    is_terminal: bool,
    /// When to write the next line.
    next_line: Instant,
}

impl Progress {
    /// Begins a step, named by what it does, such as `copying contents`. `total` is how much there is to do; `None` if
    /// that is unknown.
    pub fn new(step: &'static str, unit: Unit, total: Option<u64>) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let begin = Instant::now();
        let next_line = begin + LINE_PERIOD;
        let mut progress = Progress { step, unit, total, done: 0, begin, is_terminal, next_line };
        if is_terminal {
            progress.show();
        }
        progress
    }

    /// Notes that so much more is done.
    pub fn advance(&mut self, amount: u64) {
        self.done += amount;
        if self.next_line <= Instant::now() {
            self.show();
        }
    }

    /// Writes lines while that of the progress is out of their way.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.erase();
        write()
    }

    fn show(&mut self) {
        let period = if self.is_terminal { TERMINAL_PERIOD } else { LINE_PERIOD };
        self.next_line = Instant::now() + period;
        if self.is_terminal {
            write(&format!("{ERASE}{}", self.text()));
        } else {
            write(&format!("{}\n", self.text()));
        }
    }

    fn text(&self) -> String {
        let amount = |number| match self.unit {
            Unit::Bytes => bytes(number),
            Unit::Items => number.to_string(),
        };
        let mut text = format!("{}: {}", self.step, amount(self.done));
        if let Some(total) = self.total {
            text += &format!(" of {}", amount(total));
            // Nothing is known of the time before something is done.
            if self.done > 0 {
                let rest = total.saturating_sub(self.done) as f64 / self.done as f64;
                let seconds = self.begin.elapsed().as_secs_f64() * rest;
                text += &match seconds {
                    ..120.0 => format!(", {seconds:.0} s left"),
                    _ => format!(", {:.0} min left", seconds / 60.0),
                };
            }
        }
        text
    }

    fn erase(&self) {
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

/// Nobody may read it any more, which must not stop the work.
fn write(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

/// The number of bytes in a unit that people read, such as `1.50 GiB`.
pub fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{number} B") } else { format!("{value:.2} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_given_in_the_largest_unit_that_has_a_whole_one() {
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_572_864, "1.50 MiB"),
            (u64::from(u32::MAX) + 1, "4.00 GiB"),
            (5 << 50, "5120.00 TiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }
}
