//! `cloakroom gc`: removes contents without a record, and names records without a content.

use std::io::{self, Write};

use crate::background::sweep;
use crate::config::Config;
use crate::db;
use crate::storage::Storage;
use crate::telemetry::logging;

/// Runs the command. It may run beside a server, which sweeps in the same way every hour.
pub fn gc(config: &Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let db = db::open_and_migrate(config)?;
    // A reader that closes the pipe early, such as `head`, must not stop the work.
    let print = |line: String| drop(writeln!(io::stdout(), "{line}"));
    let storage = Storage::open(&config.data_dir).map_err(|e| format!("{e:?}"))?;
    let removed = sweep::remove_orphans(&storage, &db).map_err(|e| format!("{e:?}"))?;
    for path in &removed {
        print(format!("removed {}", path.display()));
    }
    let missing = sweep::missing_contents(&storage, &db).map_err(|e| format!("{e:?}"))?;
    for id in &missing {
        print(format!("the content of file {id} is missing"));
    }
    print(format!("{} removed, {} missing.", removed.len(), missing.len()));
    Ok(())
}
