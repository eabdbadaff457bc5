//! Findings of the commands that look for faults: a line for each finding, and the number of each kind.

use std::fmt::Display;

use super::print_line;
use super::quantity::count;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// All is as it should be.
    Ok,
    /// Something works, but may harm later or is probably not intended.
    Warning,
    /// Something does not work, or loses data.
    Fault,
}

/// Prints findings as they come, so that a wait for something that hangs does not hide what was found before it.
#[derive(Default)]
pub struct Findings {
    warnings: usize,
    faults: usize,
    /// The numbers of warnings and faults at the last summary.
    summed_up: (usize, usize),
}

impl Findings {
    /// Prints and counts a finding. `advice` says what to do; it may be empty if `text` does.
    pub fn report(&mut self, level: Level, text: impl Display, advice: &str) {
        self.warnings += usize::from(level == Level::Warning);
        self.faults += usize::from(level == Level::Fault);
        print(level, text);
        if !advice.is_empty() {
            print_line(format_args!("        {}", advice.replace(char::is_control, " ")));
        }
    }

    pub fn ok(&mut self, text: impl Display) {
        self.report(Level::Ok, text, "");
    }

    pub fn warning(&mut self, text: impl Display, advice: &str) {
        self.report(Level::Warning, text, advice);
    }

    pub fn fault(&mut self, text: impl Display, advice: &str) {
        self.report(Level::Fault, text, advice);
    }

    /// Reports that all is well, or else a finding of the level `otherwise` with the same text and the advice.
    pub fn judge(&mut self, is_well: bool, otherwise: Level, text: impl Display, advice: &str) {
        if is_well { self.ok(text) } else { self.report(otherwise, text, advice) }
    }

    /// Prints a line that sums up what was found since the last summary. It is as bad as the worst of that, and not
    /// counted itself.
    pub fn sum_up(&mut self, text: impl Display) {
        let (warnings, faults) = self.summed_up;
        self.summed_up = (self.warnings, self.faults);
        let level = match () {
            () if self.faults > faults => Level::Fault,
            () if self.warnings > warnings => Level::Warning,
            () => Level::Ok,
        };
        print(level, text);
    }

    /// Prints how much was found. Fails if there are faults; warnings are no failure.
    pub fn finish(self) -> Result<(), String> {
        let shown = |number, noun| match number {
            0 => format!("no {noun}s"),
            _ => count(number as u64, noun),
        };
        let (faults, warnings) = (shown(self.faults, "fault"), shown(self.warnings, "warning"));
        print_line(format_args!("{faults}, {warnings}."));
        if self.faults == 0 { Ok(()) } else { Err(format!("{faults} found")) }
    }
}

/// Prints a line. Parts of it may come from a server or a file name: control characters, which could begin another line
/// or be commands for the terminal, become blanks.
fn print(level: Level, text: impl Display) {
    let word = match level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Fault => "fault",
    };
    print_line(format_args!("{word:<7} {}", text.to_string().replace(char::is_control, " ")));
}
