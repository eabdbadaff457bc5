//! Imported password hashes whose check takes more memory than this service gives to all checks. Each start logs how
//! many accounts have one, `doctor` lists it, and an import says it of its own.

use std::num::NonZero;
use std::thread::available_parallelism;

use log::Level::Warn;

use super::warnings::Finding;
use crate::accounts::extras::count_imported;
use crate::config::Config;
use crate::db::Database;
use crate::error::Error;

/// The bytes that all turns of the queue of password hashes have together, which the check of one hash may take.
pub fn most_memory(config: &Config) -> u64 {
    let cores = available_parallelism().map_or(1, NonZero::get);
    config.scrypt.memory() * config.hashes_at_once(cores) as u64
}

/// That so many accounts have a hash whose check takes more than [`most_memory`], up to `memory` bytes; nothing if
/// there are none.
pub fn finding(config: &Config, accounts: u64, memory: u64) -> Option<Finding> {
    let (memory, most) = (memory / 1024, most_memory(config) / 1024);
    let text = format!(
        "accounts: {accounts} cannot sign in with their imported password hashes, whose checks take up to {memory} \
         KiB: {most} KiB is the memory of all hashes that may run at once, and they are answered 503"
    );
    let advice = "Give the service more cores or memory, or name a CLOAKROOM_SCRYPT that takes more memory; or let \
                  their owners choose a password by the link for a forgotten one.";
    (accounts > 0).then_some((Warn, text, advice))
}

/// Looks for such accounts.
pub fn find(config: &Config, db: &Database) -> Result<Option<Finding>, Error> {
    let (accounts, memory) = count_imported(db, most_memory(config))?;
    Ok(finding(config, accounts, memory))
}
