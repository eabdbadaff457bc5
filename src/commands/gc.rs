//! `cloakroom gc`: keeps the directory of contents and its records together.

use std::io::{self, Write};

use crate::background::sweep;
use crate::config::Config;
use crate::db;
use crate::storage::Storage;
use crate::telemetry::logging;

/// `cloakroom gc`.
pub fn gc(config: &Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let db = db::open_and_migrate(config)?;
    let (mut removed, mut missing) = (0, 0);
    // A reader that has seen enough ends the printing, not the work.
    let say = |line: String| drop(writeln!(io::stdout(), "{line}"));
    let outcome = Storage::open(&config.data_dir).and_then(|files| {
        sweep::sweep(&files, &db, &mut |path| {
            say(format!("removed {}", path.display()));
            removed += 1;
        })?;
        sweep::check(&files, &db, &mut |id| {
            say(format!("the content of file {id} is missing"));
            missing += 1;
        })
    });
    outcome.map_err(|e| format!("{e:?}"))?;
    say(format!("{removed} removed, {missing} missing."));
    Ok(())
}
