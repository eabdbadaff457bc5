//! What the commands print: lines, numbers, how far they have come, and the findings of those that look for faults.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::time::{Duration, Instant};

use log::Level;

use crate::serve::warnings::Finding;

/// Prints a line about what a command did. A reader that closes the pipe early, such as `head`, must not stop the work.
pub fn print_line(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// The number with the noun in its singular or plural: `0 faults`, `1 fault`, `2 faults`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The number of bytes in the largest unit of which there is a whole one, such as `10 MiB` or `1.50 GiB`.
pub fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, None);
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, Some(larger));
    }
    match unit {
        None => count(number, "byte"),
        Some(unit) if value.fract() == 0.0 => format!("{value} {unit}"),
        Some(unit) => format!("{value:.2} {unit}"),
    }
}

/// How many lines about things of one kind are printed, unless all are asked for.
pub const MAX_NAMED: u64 = 20;

/// Prints lines that name one thing each: of a kind at most twenty, unless all are to be named, and how many more there
/// are.
pub struct Names {
    all: bool,
    /// What each line begins with.
    prefix: &'static str,
    kind: &'static str,
    /// Things of all kinds, and of those before this one.
    total: u64,
    before: u64,
}

impl Names {
    pub fn new(all: bool) -> Names {
        Names { all, prefix: "", kind: "", total: 0, before: 0 }
    }

    /// Names another thing, unless there were many of its kind. One of another kind than the last ends that kind.
    pub fn print(&mut self, kind: &'static str, line: impl Display) {
        if kind != self.kind {
            self.end();
            self.kind = kind;
        }
        self.total += 1;
        if self.all || self.total - self.before <= MAX_NAMED {
            print_line(format_args!("{}{line}", self.prefix));
        }
    }

    /// Ends a kind: says how many of it were not named, if any.
    pub fn end(&mut self) {
        let unnamed = (self.total - self.before).saturating_sub(MAX_NAMED);
        self.before = self.total;
        if unnamed > 0 && !self.all {
            print_line(format_args!("{}and {unnamed} more", self.prefix));
        }
    }
}

/// Time between two lines on a terminal.
const TERMINAL_PERIOD: Duration = Duration::from_secs(10);
/// Time between two lines elsewhere, such as in a log.
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// Shows how many of the items of a step are done, which may take long: by lines on standard error, because standard
/// output is for what the command did. On a terminal the first one comes at once, otherwise after a minute.
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

    /// Counts so many more items as done.
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

/// Prints findings as they come, so that a wait for something that hangs does not hide what was found before it.
pub struct Findings {
    warnings: Names,
    faults: Names,
    /// The most severe level since the last summary.
    worst: Level,
}

impl Findings {
    /// No findings yet. Of a kind at most twenty warnings and twenty faults are printed, unless `all` are to be.
    pub fn new(all: bool) -> Findings {
        let names = |level| Names { prefix: word(level), ..Names::new(all) };
        Findings { warnings: names(Level::Warn), faults: names(Level::Error), worst: Level::Info }
    }

    /// Prints and counts a finding. `advice` says what to do unless all is well; it may be empty if `text` does.
    pub fn report(&mut self, level: Level, text: impl Display, advice: &str) {
        // `Error` is the least of the levels.
        self.worst = self.worst.min(level);
        match level {
            Level::Error => self.faults.print("", without_controls(text)),
            Level::Warn => self.warnings.print("", without_controls(text)),
            _ => return print(level, text),
        }
        if !advice.is_empty() {
            print_line(format_args!("        {}", without_controls(advice)));
        }
    }

    /// Prints and counts findings.
    pub fn print(&mut self, found: impl IntoIterator<Item = Finding>) {
        found.into_iter().for_each(|(level, text, advice)| self.report(level, text, advice));
    }

    pub fn ok(&mut self, text: impl Display) {
        self.report(Level::Info, text, "");
    }

    pub fn warning(&mut self, text: impl Display) {
        self.report(Level::Warn, text, "");
    }

    pub fn fault(&mut self, text: impl Display) {
        self.report(Level::Error, text, "");
    }

    /// Ends a kind of findings.
    pub fn end_kind(&mut self) {
        self.warnings.end();
        self.faults.end();
    }

    /// Ends a kind, and prints a line that sums up what was found since the last summary. Its level is the most severe
    /// of that, and it is not counted itself.
    pub fn sum_up(&mut self, text: impl Display) {
        self.end_kind();
        print(mem::replace(&mut self.worst, Level::Info), text);
    }

    /// Prints how much was found. Fails if there are faults; warnings are no failure.
    pub fn finish(self) -> Result<(), String> {
        let shown = |number, noun| match number {
            0 => format!("no {noun}s"),
            _ => count(number, noun),
        };
        let faults = shown(self.faults.total, "fault");
        print_line(format_args!("{faults}, {}.", shown(self.warnings.total, "warning")));
        if self.faults.total == 0 { Ok(()) } else { Err(format!("{faults} found")) }
    }
}

/// What a line about a finding begins with.
fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "fault   ",
        Level::Warn => "warning ",
        _ => "ok      ",
    }
}

fn print(level: Level, text: impl Display) {
    print_line(format_args!("{}{}", word(level), without_controls(text)));
}

/// A text, parts of which may come from a server or a file name, in which blanks replace control characters: these
/// could begin another line, or be commands for the terminal.
fn without_controls(text: impl Display) -> String {
    text.to_string().replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_given_in_the_largest_unit_that_has_a_whole_one() {
        for (number, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1_572_864, "1.50 MiB"),
            (u64::from(u32::MAX) + 1, "4 GiB"),
            (5 << 50, "5120 TiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }
}
