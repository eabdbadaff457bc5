//! What a command finds that examines an installation: lines on standard output, each of which begins with `ok`,
//! `warning` or `fault`, so that they can be searched, and the exit status that follows from the worst of them.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints findings, and counts those that are not ok.
#[derive(Default)]
pub struct Findings {
    warnings: u64,
    faults: u64,
}

impl Findings {
    /// Something is as it should be.
    pub fn ok(&self, text: impl Display) {
        print("ok", text);
    }

    /// Something may be wrong, or mends itself.
    pub fn warning(&mut self, text: impl Display) {
        self.warnings += 1;
        print("warning", text);
    }

    /// Something is wrong.
    pub fn fault(&mut self, text: impl Display) {
        self.faults += 1;
        print("fault", text);
    }

    /// How many faults there were so far.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The numbers of both, such as `1 fault, 2 warnings`.
    pub fn counts(&self) -> String {
        let plural = |number| if number == 1 { "" } else { "s" };
        let Findings { warnings, faults } = self;
        format!("{faults} fault{}, {warnings} warning{}", plural(*faults), plural(*warnings))
    }
}

/// Prints one line. A reader that closes the pipe early, such as `head`, does not stop the command.
fn print(severity: &str, text: impl Display) {
    drop(writeln!(io::stdout(), "{severity:<7} {text}"));
}
