//! What a command finds that examines an installation: lines on standard output, each of which begins with `ok`,
//! `warning` or `fault`, so that they can be searched, and the numbers of those that are not ok.

use std::fmt::Display;
use std::io::{self, Write};

/// How bad a finding is, from good to bad.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// All is as it should be.
    #[default]
    Ok,
    /// Something may be wrong, or mends itself.
    Warning,
    /// Something is wrong.
    Fault,
}

/// Prints findings and counts them.
#[derive(Default)]
pub struct Findings {
    warnings: u64,
    faults: u64,
    /// The worst since the last conclusion.
    worst: Severity,
}

impl Findings {
    pub fn ok(&self, text: impl Display) {
        print(Severity::Ok, text);
    }

    pub fn warning(&mut self, text: impl Display) {
        self.warnings += 1;
        self.worst = self.worst.max(Severity::Warning);
        print(Severity::Warning, text);
    }

    pub fn fault(&mut self, text: impl Display) {
        self.faults += 1;
        self.worst = Severity::Fault;
        print(Severity::Fault, text);
    }

    /// Prints a line that sums up the findings since the last one of these. It is as bad as the worst of them, and not
    /// counted.
    pub fn conclude(&mut self, text: impl Display) {
        print(std::mem::take(&mut self.worst), text);
    }

    /// How many faults there are.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The numbers of both, such as `1 fault, 2 warnings`.
    pub fn counts(&self) -> String {
        let plural = |number| if number == 1 { "" } else { "s" };
        let Findings { warnings, faults, .. } = self;
        format!("{faults} fault{}, {warnings} warning{}", plural(*faults), plural(*warnings))
    }
}

/// Prints one line. A reader that closes the pipe early, such as `head`, does not stop the command.
fn print(severity: Severity, text: impl Display) {
    let word = match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Fault => "fault",
    };
    drop(writeln!(io::stdout(), "{word:<7} {text}"));
}
