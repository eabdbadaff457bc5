//! What a command that looks for faults has found: a line for each finding, and the number of each kind.

/// Prints findings as they come, so that a wait for something that hangs does not hide what was found before it.
#[derive(Default)]
pub struct Findings {
    warnings: usize,
    faults: usize,
    /// How many of both there were at the last conclusion.
    concluded: (usize, usize),
}

impl Findings {
    /// Something is as it should be.
    pub fn ok(&mut self, text: &str) {
        print(&format!("ok      {text}"));
    }

    /// Something works, but may harm later or is probably not intended. `advice` says what to do; it may be empty if
    /// `text` does.
    pub fn warning(&mut self, text: &str, advice: &str) {
        self.warnings += 1;
        print(&format!("warning {text}"));
        print_advice(advice);
    }

    /// Something does not work, or loses data. `advice` is as above.
    pub fn fault(&mut self, text: &str, advice: &str) {
        self.faults += 1;
        print(&format!("fault   {text}"));
        print_advice(advice);
    }

    /// Prints a line that sums up what was found since the last one of these. It is as bad as the worst of that, and
    /// not counted itself.
    pub fn conclude(&mut self, text: &str) {
        let (warnings, faults) = self.concluded;
        self.concluded = (self.warnings, self.faults);
        let word = match () {
            _ if self.faults > faults => "fault",
            _ if self.warnings > warnings => "warning",
            _ => "ok",
        };
        print(&format!("{word:<7} {text}"));
    }

    /// Prints how much was found. Fails if there are faults; warnings are no failure.
    pub fn finish(self) -> Result<(), String> {
        let (faults, warnings) = (count(self.faults, "fault"), count(self.warnings, "warning"));
        print(&format!("{faults}, {warnings}."));
        if self.faults == 0 { Ok(()) } else { Err(format!("{faults} found")) }
    }
}

/// The number with the noun in its singular or plural: `no faults`, `1 fault`, `2 faults`.
fn count(number: usize, noun: &str) -> String {
    match number {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

fn print_advice(advice: &str) {
    if !advice.is_empty() {
        print(&format!("        {advice}"));
    }
}

/// Prints a line. Parts of it may come from a server or a file name: control characters, which could begin another line
/// or be commands for the terminal, become blanks. A reader that closes the pipe early, such as `head`, must not stop
/// the work.
fn print(line: &str) {
    let line = line.replace(char::is_control, " ");
    super::print_line(line);
}
