//! Standard error as systemd's journal reads it: a line may begin with its priority (sd-daemon(3)), by which
//! `journalctl -p err` finds it.

use std::io;

use log::Level;
use rustix::fs::fstat;

use crate::config;

/// What a line begins with in the journal; nothing if standard error leads elsewhere, such as to a terminal.
#[derive(Clone, Copy)]
pub struct PriorityPrefix {
    is_journal: bool,
}

impl PriorityPrefix {
    /// Finds out where standard error leads. It is the journal if the variable of systemd names the same file, by its
    /// device and inode (systemd.exec(5)): a process inherits the variable also where its output was redirected.
    pub fn of_standard_error() -> PriorityPrefix {
        let file = fstat(io::stderr()).map(|file| format!("{}:{}", file.st_dev, file.st_ino));
        let journal = config::journal_stream();
        PriorityPrefix { is_journal: journal.is_some() && journal == file.ok() }
    }

    /// The priority of a level, which is one of syslog(3). Lines without one are of the priority `info`.
    pub fn of(self, level: Level) -> &'static str {
        match level {
            _ if !self.is_journal => "",
            Level::Error => "<3>",
            Level::Warn => "<4>",
            Level::Info => "<6>",
            Level::Debug | Level::Trace => "<7>",
        }
    }
}
