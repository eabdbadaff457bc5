//! Shows how far a command has come that may take long: as a bar on a terminal, otherwise as a line a minute. Both go
//! to standard error, because standard output is for what the command did.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a line is written where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(60);
/// How often the bar is drawn anew while nothing advances, so that one sees that the command is still alive.
const TICK_PERIOD: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Clone, Copy)]
pub enum Unit {
    Bytes,
    Items,
}

/// A step of a command, and how much of it is done. The bar vanishes when this is dropped.
pub struct Progress {
    step: &'static str,
    unit: Unit,
    bar: ProgressBar,
    /// When to write the next line; `None` on a terminal.
    next_line: Option<Instant>,
}

impl Progress {
    /// Begins a step, named by what it does, such as `copying contents`. `total` is how much there is to do; `None` if
    /// that is unknown.
    pub fn new(step: &'static str, unit: Unit, total: Option<u64>) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let target =
            if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(step);
        let template = match (unit, total) {
            (Unit::Bytes, Some(_)) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
            (Unit::Items, Some(_)) => "{msg} {wide_bar} {human_pos}/{human_len} {eta}",
            (Unit::Bytes, None) => "{spinner} {msg} {bytes}",
            (Unit::Items, None) => "{spinner} {msg} {human_pos}",
        };
        // The templates are constants, and a wrong one would only lose its bar.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if is_terminal {
            bar.enable_steady_tick(TICK_PERIOD);
        }
        let next_line = (!is_terminal).then(|| Instant::now() + LINE_PERIOD);
        Progress { step, unit, bar, next_line }
    }

    /// Notes that so much more is done.
    pub fn advance(&mut self, amount: u64) {
        self.bar.inc(amount);
        if self.next_line.is_some_and(|time| time <= Instant::now()) {
            self.next_line = Some(Instant::now() + LINE_PERIOD);
            let total =
                self.bar.length().map_or(String::new(), |n| format!(" of {}", self.amount(n)));
            // Nobody may read it any more, which must not stop the work.
            let done = self.amount(self.bar.position());
            drop(writeln!(io::stderr(), "{}: {done}{total}", self.step));
        }
    }

    /// Writes lines while the bar is out of their way.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    fn amount(&self, number: u64) -> String {
        match self.unit {
            Unit::Bytes => HumanBytes(number).to_string(),
            Unit::Items => number.to_string(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
