//! `cloakroom check`: compares the database with the data directory, and looks for damage in either. It may run beside
//! a service: whatever looks wrong is looked up once more before it is reported, in an order that no upload and no
//! deletion upsets. It changes nothing, unless it is to bring contents back from the trash.

mod contents;
mod database;

use std::io::{self, Write};
use std::time::Instant;

use super::findings::Findings;
use super::installation;
use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;
use crate::telemetry::logging;

/// What every step of the check uses.
struct Check<'a> {
    config: &'a Config,
    storage: &'a Storage,
    db: &'a Database,
    /// How many of the contents to read, in percent.
    sample: f64,
    /// Whether to bring missing contents back from the trash.
    repairs: bool,
    findings: Findings,
}

/// Runs the command. Fails if there is any fault; each has been printed by then.
pub fn check(config: &Config, sample: f64, repairs: bool) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let begin = Instant::now();
    let mut findings = Findings::default();
    let (storage, db) = match open(config) {
        Ok(opened) => opened,
        Err(reason) => {
            findings.fault(&reason, "");
            return findings.finish();
        }
    };
    let mut check = Check { config, storage: &storage, db: &db, sample, repairs, findings };
    // One step after the other also where one fails, as on a damaged table: the others may find more.
    check.run("records", Check::compare_records);
    check.run("contents", Check::compare_contents);
    check.run("totals", Check::compare_totals);
    check.run("schema", Check::look_at_schema);
    check.run("amcheck", Check::verify_indexes);
    // A reader that closes the pipe early, such as `head`, must not change the exit status.
    drop(writeln!(io::stdout(), "checked in {:.1} s", begin.elapsed().as_secs_f64()));
    check.findings.finish()
}

/// Opens both sides, and makes sure that they can be compared: the schema is this program's, and they belong together.
/// On failure: what to tell the operator.
fn open(config: &Config) -> Result<(Storage, Database), String> {
    let storage = Storage::open_existing(&config.data_dir)?;
    let db = db::open(config)?;
    db::check_schema(&db)?;
    installation::check_only(config, &db, &storage)?;
    Ok((storage, db))
}

impl Check<'_> {
    /// Runs a step, which prints what it finds. One that cannot be finished is a fault.
    fn run(&mut self, name: &str, step: fn(&mut Self) -> Result<(), Error>) {
        if let Err(error) = step(self) {
            self.fault(&format!("{name}: {}", error.cause()));
            self.findings.conclude(&format!("{name}: not finished"));
        }
    }

    /// Prints a fault of one line, which is enough to find what it is about.
    fn fault(&mut self, text: &str) {
        self.findings.fault(text, "");
    }

    /// Prints a warning of one line.
    fn warning(&mut self, text: &str) {
        self.findings.warning(text, "");
    }
}
