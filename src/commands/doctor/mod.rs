//! `cloakroom doctor`: looks at everything that the service depends on, and says what is wrong and what to do about it.
//! It changes nothing. What is wrong with one thing does not keep it from looking at the others.

mod data_directory;
mod database;
mod limits;
mod mail_server;
mod settings;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::findings::Findings;
use super::serve::ignore_file_size_signal;
use crate::config::Config;

/// The longest wait for a server. Both have shorter limits of their own, but not for looking up their names.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// The longest wait for a single connection to the database, where the settings allow longer ones.
const MAX_CONNECT: Duration = Duration::from_secs(5);

/// Prints the findings. `refused` is what is wrong with the settings, of which `config` has the defaults then. `all`
/// lists the settings with defaults too. Fails if there are faults.
pub fn doctor(mut config: Config, refused: &[String], all: bool) -> Result<(), String> {
    ignore_file_size_signal()?;
    let mut findings = Findings::default();
    settings::look(&mut findings, &config, refused, all);
    config.database_timeout = config.database_timeout.min(MAX_CONNECT);
    let config = Arc::new(config);
    let facts = database::look(&mut findings, &config);
    data_directory::look(&mut findings, &config, facts.as_ref());
    limits::look(&mut findings, &config);
    mail_server::look(&mut findings, &config, facts.as_ref());
    findings.finish()
}

/// Runs `work` on a thread of its own, which may hang until the process ends. Returns `None` if it takes too long.
fn within_max_wait<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || drop(sender.send(work()));
    thread::Builder::new().spawn(work).ok()?;
    receiver.recv_timeout(MAX_WAIT).ok()
}
